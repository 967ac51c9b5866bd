import type { DependencyContainer } from 'tsyringe';
import type { Clock, IdSource } from '../base/ambient.js';
import type { Logger } from '../log/log.js';
import type { CredentialShapes } from '../log/redactor.js';
import type { Infer, JsonSchema } from '../options/schema-types.js';
import type { ExtensionPoint, Extensions } from './extension-point.js';

/** The version of the contract between kernel and plugins. It rises when a plugin written for the old one would break. */
export const API_VERSION = 1;

/** Marks a definition, so that the loader can tell a plugin from any other module, across copies of the kernel. */
export const PLUGIN_BRAND: unique symbol = Symbol.for('plugboard.plugin') as never;

/**
 * What a plugin is: data, and one function.
 *
 * 1. The loader imports the package that an entry of the configuration names and takes its default export.
 * 2. The entry's options are checked against `configSchema`; defaults are filled in; the result is frozen.
 * 3. `check` may then say what the schema cannot.
 * 4. `register` is called once for each entry. It contributes to extension points and says which it reads. It is synchronous and has
 *    no side effects: `plugboard check` calls it too.
 * 5. What `register` returned is started after everything that it reads from, and stopped before it.
 */
export interface PluginDefinition<S extends JsonSchema = JsonSchema> {
  /** The package's name, for example `@plugboard/tool-clock`. */
  readonly name: string;
  readonly apiVersion: number;
  /** One line for people, shown by `plugboard plugins` and at the head of the plugin's README. */
  readonly summary: string;
  /** An object schema. `{ type: 'object', properties: {}, additionalProperties: false }` where there are no options. */
  readonly configSchema: S;
  /** What the plugin's credentials look like. No log line of the server shows them. */
  readonly credentials?: CredentialShapes;
  /** Everything wrong with the options that the schema cannot say. No side effects but reading files. */
  check?(config: Infer<S>, check: CheckContext): readonly ConfigProblem[];
  register(ctx: PluginContext<Infer<S>>): Lifecycle | undefined | void;
}

export interface DefinedPlugin<S extends JsonSchema = JsonSchema> extends PluginDefinition<S> {
  readonly [PLUGIN_BRAND]: true;
}

/** Declares a plugin. A package's entry module exports the result as its default. */
export function definePlugin<const S extends JsonSchema>(definition: PluginDefinition<S>): DefinedPlugin<S> {
  return Object.freeze({ ...definition, [PLUGIN_BRAND]: true as const });
}

/** A fault in the options, at a place below the entry: `['tools', 0]` is `agents.x.tools[0]` where the entry is `agents.x`. */
export interface ConfigProblem {
  readonly path: readonly (string | number)[];
  /** What is wrong and what would be right, as half a sentence: `unknown tool "cluck", did you mean "clock"?` */
  readonly message: string;
}

/**
 * What `start` throws where only a running server shows that the configuration is wrong, for example two tools of one name. It is reported like any
 * other mistake in the file, by its place in it.
 */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault';

  constructor(readonly problems: readonly ConfigProblem[]) {
    super(problems.map(({ message }) => message).join('; '));
  }
}

/** What `check` may look at besides its own options. */
export interface CheckContext {
  /** The keys of a section of the file, or of another map of its top level; disabled entries included: what a reference may name. */
  entries(section: string): readonly string[];
  /** The keys of a section of the file whose entries were disabled (`optional`, `unless`). */
  disabled(section: string): readonly string[];
  /** The word that stands in the file in place of a section's entries, for example `open` in `auth: open`. */
  literal(section: string): string | undefined;
  /** A path from the options, made absolute: relative ones are relative to the configuration file. */
  resolvePath(path: string): string;
}

/** What a plugin's `register` is given. */
export interface PluginContext<C = unknown> {
  /** Where the entry stands in the file, for example `models.fast`. */
  readonly entry: string;
  /** The entry's own key, for example `fast`. */
  readonly name: string;
  /** The checked options, defaults filled in, frozen. */
  readonly config: C;
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** Class graphs of the plugin are built here. It holds `CONFIG`, `ENTRY`, `LOGGER`, `CLOCK`, `IDS` and `HOST`. */
  readonly container: DependencyContainer;
  /** Puts a value at a point, under the entry's name unless another is given. */
  contribute<T>(point: ExtensionPoint<T>, value: T, name?: string): void;
  /** Reads a point. The entry starts after everyone who contributes to it, and stops before them. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T>;
  /** A read that orders nothing, and may be used only once all is running. */
  late<T>(point: ExtensionPoint<T>): Extensions<T>;
  /** The keys of a section of the file, or of another map of its top level, such as `projects`; disabled entries included. */
  entries(section: string): readonly string[];
  /** A path from the options, made absolute: relative ones are relative to the configuration file. */
  resolvePath(path: string): string;
}

/**
 * The life of an entry that has one.
 *
 * 1. `start` is called once, after everything the entry reads from has started. It ends when the entry is ready to work.
 * 2. If it throws or exceeds its limit, its signal is aborted, `stop` is called, and what had started before is stopped in reverse.
 * 3. `reload` is called, perhaps often, while the entry runs: the server was told (SIGHUP) that files have changed. What fails is logged, and nothing ends.
 * 4. `stop` is called once at the end, before what the entry reads from is stopped; also after a failed start. It must be safe to
 *    call without a start and twice.
 * 5. A `stop` that had to cut work short throws, and says what: everybody else still stops, and the program's exit code is 1.
 */
export interface Lifecycle {
  /** @param signal aborted when the start's time limit is over or the server is told to stop meanwhile. */
  start?(signal: AbortSignal): Promise<void> | void;
  /**
   * Reads the entry's own files again, and goes on with what it had where that is not possible.
   * @param signal aborted when the time limit, that of the start, is over.
   */
  reload?(signal: AbortSignal): Promise<void> | void;
  /** @param signal aborted when the stop's time limit is over: what is still open then is left behind. */
  stop?(signal: AbortSignal): Promise<void> | void;
  /** Milliseconds for `start` and `reload`; 10,000 where it is absent. */
  readonly startLimit?: number;
  /** Milliseconds for `stop`; 10,000 where it is absent. */
  readonly stopLimit?: number;
}
