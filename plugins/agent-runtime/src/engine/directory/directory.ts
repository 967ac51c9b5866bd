import type { Extensions, ModelConnector, Principal, ToolSource } from '@plugboard/kernel';
import type { Target, TargetInfo, TargetResolution } from '@plugboard/kernel/contracts';
import { DEFAULT_PROJECT } from '@plugboard/kernel/contracts';
import type { RuntimeSettings } from '../../config.js';
import { type Agent, configuredAgent, rawModel } from './agent.js';
import { toolEntry } from './check-config.js';

/**
 * Resolves names to agents (C-065 to C-070), in this order:
 *
 * 1. An agent of that name. If the caller may not use it, the result is `forbidden`.
 * 2. A raw model connection of that name, in the open scope and the default project only.
 * 3. The default agent of the caller's project.
 * 4. `unknown`.
 */
export class Directory {
  readonly #agents = new Map<string, Agent>();
  readonly #models = new Map<string, Agent>();
  readonly #defaults = new Map<string, string>();
  readonly #settings: RuntimeSettings['agents'];
  readonly #tools: Extensions<ToolSource>;

  constructor(
    settings: RuntimeSettings,
    models: Extensions<ModelConnector>,
    tools: Extensions<ToolSource>,
    resolvePath: (path: string) => string,
  ) {
    this.#settings = settings.agents;
    this.#tools = tools;
    for (const [name, agent] of Object.entries(settings.agents)) {
      this.#agents.set(name, configuredAgent(name, agent, models, tools, resolvePath));
    }
    for (const { name } of models) this.#models.set(name, rawModel(name, models));
    if (settings.defaultAgent !== undefined) this.#defaults.set(DEFAULT_PROJECT, settings.defaultAgent);
    for (const [project, { defaultAgent }] of Object.entries(settings.projects)) {
      if (defaultAgent !== undefined) this.#defaults.set(project, defaultAgent);
    }
  }

  resolve(name: string, principal: Principal): TargetResolution {
    const agent = this.#agents.get(name);
    if (agent) return reaches(principal, agent) ? { kind: 'target', target: agent } : { kind: 'forbidden' };
    const model = reachesModels(principal) ? this.#models.get(name) : undefined;
    if (model) return { kind: 'target', target: model };
    const fallback = this.#agents.get(this.#defaults.get(principal.project) ?? '');
    if (!fallback || !reaches(principal, fallback)) return { kind: 'unknown' };
    return { kind: 'target', target: fallback };
  }

  list(principal: Principal): TargetInfo[] {
    const agents = [...this.#agents.values()].filter((agent) => reaches(principal, agent));
    const models = reachesModels(principal) ? [...this.#models.values()] : [];
    return [...agents, ...models.filter((model) => !this.#agents.has(model.name))].map(({ name, kind, description }) => ({
      name,
      kind,
      description,
    }));
  }

  /** Returns the agent or raw model of that name, for any caller. */
  named(name: string): Agent | undefined {
    return this.#agents.get(name) ?? this.#models.get(name);
  }

  /** Whether calls of an agent, or of those that it asks, may need approval. */
  mayAsk(name: string, seen = new Set<string>()): boolean {
    const { approve = [], tools = [] } = this.#settings[name] ?? {};
    if (approve.length > 0) return true;
    if (seen.has(name)) return false;
    seen.add(name);
    const asked = tools.flatMap((pattern) => this.#tools.get(toolEntry(pattern))?.asks?.agent ?? []);
    return asked.some((agent) => this.mayAsk(agent, seen));
  }

  agents(): Iterable<Agent> {
    return this.#agents.values();
  }

  /** Whether there is an agent and a model. */
  get canAnswer(): boolean {
    return this.#agents.size > 0 && this.#models.size > 0;
  }
}

/** Whether a caller may run turns at an agent or raw model. */
export function mayUse(principal: Principal, target: Target): boolean {
  return target.kind === 'model' ? reachesModels(principal) : reaches(principal, target);
}

function reaches(principal: Principal, agent: Target): boolean {
  if (principal.agents && !principal.agents.includes(agent.name)) return false;
  return principal.project === DEFAULT_PROJECT || principal.project === agent.project;
}

function reachesModels(principal: Principal): boolean {
  return principal.project === DEFAULT_PROJECT && principal.agents === undefined;
}
