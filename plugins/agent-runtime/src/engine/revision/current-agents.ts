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
import type { Reconfiguration } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from '../../config.js';
import { checkParams } from '../directory/check-params.js';
import type { ConnectionFailures } from '../model/model-calls.js';
import { AgentRevision, type AgentRevisionOptions } from './agent-revision.js';

type Configuration = Pick<AgentRevisionOptions, 'settings' | 'models' | 'tools' | 'interceptors' | 'toolInterceptors'>;

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

  /** Finds parameters that no model of an agent supports. */
  verify(): readonly ConfigProblem[] {
    return checkParams(this.#initial.settings.agents, this.#initial.models);
  }

  /** Prepares the agents of the start. @throws ConfigFault with all problems of their tools. */
  prepareInitial(signal: AbortSignal): Promise<AgentRevision> {
    return this.#prepare(this.#initial, signal);
  }

  /** Prepares the agents of a changed configuration. @throws ConfigFault with all its problems. */
  prepare({ config, extensions }: Reconfiguration<RuntimeSettings>, signal: AbortSignal): Promise<AgentRevision> {
    return this.#prepare(configuration(config, extensions), signal);
  }

  /** Puts prepared agents in place of the current ones. Turns that run keep theirs. */
  activate(revision: AgentRevision): void {
    this.#revision = revision;
  }

  async #prepare(changed: Configuration, signal: AbortSignal): Promise<AgentRevision> {
    const { clock, ids, log, resolvePath } = this.#context;
    const revision = new AgentRevision({ ...changed, clock, ids, log, resolvePath, failures: this.#failures });
    const problems = await revision.problems(signal);
    if (problems.length > 0) throw new ConfigFault(problems);
    return revision;
  }
}

function configuration(settings: RuntimeSettings, extensions: <T>(point: ExtensionPoint<T>) => Extensions<T>): Configuration {
  return {
    settings,
    models: extensions(ModelConnectors),
    tools: extensions(ToolSources),
    interceptors: extensions(Interceptors),
    toolInterceptors: extensions(ToolInterceptors),
  };
}
