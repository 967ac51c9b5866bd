import {
  ConfigFault,
  type ConfigProblem,
  type ExtensionPoint,
  type Extensions,
  Interceptors,
  ModelConnectors,
  type PluginContext,
  ToolInterceptors,
  ToolSources,
} from '@plugboard/kernel';
import { ModelInterceptors, type Reconfiguration } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from '../../config.js';
import { checkCycles } from '../directory/check-cycles.js';
import { checkParams } from '../directory/check-params.js';
import { checkTools } from '../directory/check-tools.js';
import type { ConnectionFailures } from '../model/model-calls.js';
import { AgentRevision, type Configuration } from './agent-revision.js';

/** The agents of the configuration in force. */
export class CurrentAgents {
  readonly #context: PluginContext<RuntimeSettings>;
  /** The configuration of the start. */
  readonly #initial: Configuration;
  /** Shared by all revisions. */
  readonly #failures: ConnectionFailures = new WeakMap();
  #revision: AgentRevision | undefined;

  constructor(@inject(CONTEXT) context: PluginContext<RuntimeSettings>) {
    this.#context = context;
    this.#initial = configuration(context.config, (point) => context.extensions(point));
  }

  /** @throws Error before the runtime has started. */
  get revision(): AgentRevision {
    if (!this.#revision) throw new Error('the agent runtime has not started yet');
    return this.#revision;
  }

  /**
   * Finds parameters that no model of an agent supports, tools that its entries do not have, and
   * agents that ask in a circle.
   */
  verify(): readonly ConfigProblem[] {
    const { settings, models, tools } = this.#initial;
    const { agents } = settings;
    return [...checkParams(agents, models), ...checkTools(agents, tools), ...checkCycles(agents, tools)];
  }

  /**
   * Prepares the agents of a changed configuration, or those of the start.
   * @throws ConfigFault with all problems of their tools.
   */
  async prepare(changed: Reconfiguration<RuntimeSettings> | undefined, signal: AbortSignal): Promise<AgentRevision> {
    const current = changed ? configuration(changed.config, changed.extensions) : this.#initial;
    const revision = new AgentRevision(current, this.#context, this.#failures);
    const problems = await revision.problems(signal);
    if (problems.length > 0) throw new ConfigFault(problems);
    return revision;
  }

  /** Puts prepared agents in place of the current ones. Turns that run keep theirs. */
  activate(revision: AgentRevision): void {
    this.#revision = revision;
  }
}

function configuration(settings: RuntimeSettings, extensions: <T>(point: ExtensionPoint<T>) => Extensions<T>): Configuration {
  return {
    settings,
    models: extensions(ModelConnectors),
    tools: extensions(ToolSources),
    interceptors: extensions(Interceptors),
    toolInterceptors: extensions(ToolInterceptors),
    modelInterceptors: extensions(ModelInterceptors),
  };
}
