import type {
  ConfigProblem,
  Extensions,
  Interceptor,
  ModelConnector,
  PluginContext,
  ToolInterceptor,
  ToolSource,
} from '@plugboard/kernel';
import { type ModelInterceptor, type Target, TurnError, type TurnRequest } from '@plugboard/kernel/contracts';
import type { RuntimeSettings } from '../../config.js';
import { agentOf } from '../directory/agent.js';
import { checkCycles } from '../directory/check-cycles.js';
import { checkParams } from '../directory/check-params.js';
import { Directory } from '../directory/directory.js';
import { type ConnectionFailures, ModelCalls } from '../model/model-calls.js';
import { KnownToolLists } from '../tools/known-tool-lists.js';
import { Toolboxes } from '../tools/toolbox.js';

/** What a revision is made of. */
export interface Configuration {
  readonly settings: RuntimeSettings;
  readonly models: Extensions<ModelConnector>;
  readonly tools: Extensions<ToolSource>;
  readonly interceptors: Extensions<Interceptor>;
  readonly toolInterceptors: Extensions<ToolInterceptor>;
  readonly modelInterceptors: Extensions<ModelInterceptor>;
}

/**
 * The agents with their models, tools and interceptors, under one revision of the configuration.
 *
 * It is made when the runtime starts, and by each reload that changes something about it. A turn
 * keeps the revision in which it begins to run, and holds the entries that it uses.
 */
export class AgentRevision {
  readonly directory: Directory;
  readonly toolboxes: Toolboxes;
  readonly toolLists = new KnownToolLists();
  readonly models: ModelCalls;
  readonly interceptors: Extensions<Interceptor>;
  readonly toolInterceptors: Extensions<ToolInterceptor>;
  readonly #settings: RuntimeSettings;
  readonly #connectors: Extensions<ModelConnector>;
  readonly #tools: Extensions<ToolSource>;

  /**
   * @param failures shared by all revisions.
   * @throws Error if a prompt file cannot be read.
   */
  constructor(configuration: Configuration, { clock, ids, log, resolvePath }: PluginContext, failures: ConnectionFailures) {
    const { settings, models, interceptors, toolInterceptors, modelInterceptors } = configuration;
    this.#settings = settings;
    this.#connectors = fixedView(models);
    this.#tools = fixedView(configuration.tools);
    this.directory = new Directory(settings, this.#connectors, this.#tools, resolvePath);
    this.toolboxes = new Toolboxes(this.#tools, log);
    this.models = new ModelCalls(this.#connectors, fixedView(modelInterceptors), clock, ids, log, failures);
    this.interceptors = fixedView(interceptors);
    this.toolInterceptors = fixedView(toolInterceptors);
  }

  /** Finds mistakes that appear only together with running models and tools. */
  async problems(signal: AbortSignal): Promise<readonly ConfigProblem[]> {
    const { agents } = this.#settings;
    const problems = [...checkParams(agents, this.#connectors), ...checkCycles(agents, this.#tools)];
    for (const { name, tools } of this.directory.agents()) {
      for (const { path, message } of await this.toolboxes.problems(tools, signal)) {
        problems.push({ path: ['agents', name, 'tools', ...path], message });
      }
    }
    return problems;
  }

  /** The limit that all callers of a project share, if it has one. */
  requestsPerMinute(project: string): number | undefined {
    const { projects } = this.#settings;
    return Object.hasOwn(projects, project) ? projects[project]?.requestsPerMinute : undefined;
  }

  /**
   * The target of a request as it is in this revision: the configuration may have changed since it
   * was resolved.
   * @throws TurnError if the caller can no longer use it; TypeError if it does not come from
   *   `resolve` of this runtime.
   */
  targetOf({ target, principal }: TurnRequest): Target {
    const { name, kind } = target;
    if (this.directory.named(name) === target) return target;
    agentOf(target);
    const resolution = this.directory.resolve(name, principal);
    if (resolution.kind === 'target' && resolution.target.name === name && resolution.target.kind === kind)
      return resolution.target;
    throw new TurnError('invalid_request', `The configuration has changed, and '${name}' is no longer available.`, {
      param: 'model',
    });
  }
}

/** The contributions that a view shows now, whatever a reload changes later. */
function fixedView<T>(view: Extensions<T>): Extensions<T> {
  const all = view.all();
  const byName = new Map(all.map(({ name, value }) => [name, value]));
  return {
    all: () => all,
    get: (name) => byName.get(name),
    one: () => view.one(),
    [Symbol.iterator]: () => all[Symbol.iterator](),
  };
}
