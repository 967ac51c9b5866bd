import type { DependencyContainer } from 'tsyringe';
import { recognizeAcrossCopies } from '../base/across-copies.js';
import type { Clock, IdSource } from '../base/ambient.js';
import type { EntryHealth, HostView } from '../base/status.js';
import type { Logger } from '../log/log.js';
import type { CredentialShapes } from '../log/redactor.js';
import type { Infer, JsonSchema } from '../options/schema-types.js';
import type { Budgets } from './budgets.js';
import type { ExtensionPoint, Extensions } from './extension-point.js';
import type { PluginState } from './state.js';

/**
 * The version of the contract between kernel and plugins. It is raised when plugins written for the
 * old one would break.
 *
 * @public
 */
export const API_VERSION = 1;

/** Marks a definition, so that the loader recognises it across copies of the kernel. @public */
export const PLUGIN_BRAND: unique symbol = Symbol.for('plugboard.plugin') as never;

/**
 * A plugin: data, and one function.
 *
 * 1. The loader imports the package that a configuration entry names and takes its default export.
 * 2. The entry's options are validated with `configSchema`, defaults are filled in, and the result
 *    is frozen.
 * 3. `check` validates what the schema cannot express.
 * 4. `register` is called once for each entry. It contributes to extension points and declares
 *    which it reads. It is synchronous and has no side effects: `plugboard check` calls it too.
 * 5. The returned lifecycle starts after everything that the entry reads from, and stops before it.
 *
 * @public
 */
export interface PluginDefinition<S extends JsonSchema = JsonSchema> {
  /** The package's name, for example `@you/greeter`. */
  readonly name: string;
  /** The `API_VERSION` that the plugin was written for. */
  readonly apiVersion: number;
  /** One line that says what the plugin does. Listings and the plugin's README show it. */
  readonly summary: string;
  /** The schema of the options. Without options: `{ type: 'object', properties: {} }`. */
  readonly configSchema: S;
  /** Says what to use instead of this plugin. A configuration that uses it gets a warning. */
  readonly deprecated?: string;
  /** What the plugin's credentials look like. No log line of the server shows them. */
  readonly credentials?: CredentialShapes;
  /** The sections that the plugin depends on. A missing one gets its default entry. */
  readonly needs?: readonly string[];
  /** Top-level options that cannot change while the server runs: a reload refuses a change. */
  readonly fixedOptions?: readonly string[];
  /**
   * An entry of the plugin owns something that only one can own: it polls a service, listens on a
   * port, holds a lock. When a reload replaces or removes the entry, it is stopped first, whatever
   * still pins it, and its successor starts after that. If the reload then fails, the entry is
   * registered and started again with its earlier options. `reconfigure` avoids the interruption.
   */
  readonly exclusive?: boolean;
  /** Returns mistakes that the schema cannot express. No side effects, but may read files. */
  check?(config: Infer<S>, check: CheckContext): readonly ConfigProblem[];
  register(ctx: PluginContext<Infer<S>>): Lifecycle<Infer<S>> | undefined | void;
}

/** A plugin as `definePlugin` returns it: the default export of a plugin's module. @public */
export interface DefinedPlugin<S extends JsonSchema = JsonSchema> extends PluginDefinition<S> {
  readonly [PLUGIN_BRAND]: true;
}

/** Defines a plugin. A package's entry module exports the result as its default. @public */
export function definePlugin<const S extends JsonSchema>(definition: PluginDefinition<S>): DefinedPlugin<S> {
  return Object.freeze({ ...definition, [PLUGIN_BRAND]: true as const });
}

/** Whether a value was made by `definePlugin`, of this copy of the kernel or of another. */
export function isPlugin(value: unknown): value is DefinedPlugin {
  return typeof value === 'object' && value !== null && PLUGIN_BRAND in value;
}

/** A mistake in the options. @public */
export interface ConfigProblem {
  /** Where, below the entry `greeters.hello`: `['words', 0]` is `greeters.hello.words[0]`. */
  readonly path: readonly (string | number)[];
  /** What is wrong and what to do, as half a sentence: `unknown word "helo", did you mean …?` */
  readonly message: string;
}

/**
 * Thrown by `start` if it finds a mistake in the configuration that only a running server shows,
 * for example because two servers offer the same name. It is reported like any other mistake in the
 * file, with its position.
 *
 * @public
 */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault';

  static {
    recognizeAcrossCopies(ConfigFault, 'ConfigFault');
  }

  constructor(readonly problems: readonly ConfigProblem[]) {
    super(problems.map(({ message }) => message).join('; '));
  }
}

/** What `check` can look at besides its own options. @public */
export interface CheckContext {
  /**
   * The keys of a section of the file, or of another map of its top level. Disabled entries are
   * included: references may name them.
   * @param where leaves only entries that set these options to these values in the file;
   *   undefined is the value of an option that is not set.
   */
  entries(section: string, where?: Readonly<Record<string, unknown>>): readonly string[];
  /** The keys of a section's disabled entries (`optional`, `unless`). */
  disabled(section: string): readonly string[];
  /** The word in place of a section's entries, for example `open` in `auth: open`. */
  literal(section: string): string | undefined;
  /** Makes a path absolute: relative paths are relative to the configuration file. */
  resolvePath(path: string): string;
  /**
   * Reads a text file that the options name. Its content counts as part of the options: a reload
   * notices when it has changed, and `plugboard start --watch` watches it.
   * @throws the error of `node:fs` if the file cannot be read.
   */
  readFile(path: string): string;
}

/** The argument of a plugin's `register`. @public */
export interface PluginContext<C = unknown> {
  /** The entry's place in the file, for example `greeters.hello`. */
  readonly entry: string;
  /** The entry's own key, for example `hello`. */
  readonly name: string;
  /** The validated options, with defaults filled in, frozen. */
  readonly config: C;
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** The state of the server: its phase and its entries. */
  readonly host: HostView;
  /** The entry's own small state, from `start` on. Take it in `register`: that sets the order. */
  readonly state: PluginState;
  /** Budgets for what the plugin must bound, such as memory. Operators see them in the status. */
  readonly budgets: Budgets;
  /** A tsyringe container for `createGraph`, if the plugin has many classes. */
  readonly container: DependencyContainer;
  /** Contributes a value to a point, under the entry's name by default. */
  contribute<T>(point: ExtensionPoint<T>, value: T, name?: string): void;
  /** Reads a point: the entry starts after everything that contributes to it, and stops first. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T>;
  /** Reads a point without an effect on the start order. Usable once the server runs. */
  late<T>(point: ExtensionPoint<T>): Extensions<T>;
  /** The keys of a section of the file, as `CheckContext.entries` returns them. */
  entries(section: string, where?: Readonly<Record<string, unknown>>): readonly string[];
  /** Makes a path absolute: relative paths are relative to the configuration file. */
  resolvePath(path: string): string;
  /**
   * Keeps the entries that now contribute to extension points from being stopped by a reload, until
   * the returned function is called. Work that must not see a change of the configuration takes the
   * contributions it needs (`all()`) and a pin when it begins. Pins end after an hour at the
   * latest.
   */
  pin(): () => void;
}

/** A changed configuration, for an entry that stays. @public */
export interface Reconfiguration<C = unknown> {
  /** The validated options, with defaults filled in, frozen. They may be unchanged. */
  readonly config: C;
  /** Reads a point as it will be after the change. What others contribute has been started. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T>;
  /** The keys of a section of the changed file. */
  entries(section: string): readonly string[];
}

/**
 * The life of an entry.
 *
 * 1. `verify` is called once, when all entries are registered, also by `plugboard check`. It has no
 *    side effects.
 * 2. `start` is called once, after everything the entry reads from has started. It ends when the
 *    entry is ready to work.
 * 3. If it throws or exceeds its limit, its signal is aborted, `stop` is called, and everything
 *    started before is stopped in reverse.
 * 4. `reload` is called, possibly often, while the entry runs, when files may have changed
 *    (SIGHUP). A failure is logged, and the server goes on.
 * 5. `reconfigure` is called while the entry runs, when its options, or the contributions to a
 *    point that it reads, are about to change. Without it, the entry is replaced if its options
 *    change: a new one is registered and started, and the old one is stopped when the last work
 *    that pins it has ended.
 * 6. `stop` is called once at the end, before what the entry reads from is stopped; also after a
 *    failed start. It must be safe to call without a start and twice. It lets running work end
 *    until its signal is aborted.
 * 7. Then it cuts the rest short, within a second, and throws an error that says what it cut: the
 *    other entries still stop, and the exit code is 1.
 *
 * @public
 */
export interface Lifecycle<C = unknown> {
  /** Finds mistakes in the options that appear only together with other entries' contributions. */
  verify?(): readonly ConfigProblem[];
  /** @param signal aborted when the time limit is over or the server is asked to stop. */
  start?(signal: AbortSignal): Promise<void> | void;
  /**
   * Reads the entry's own files again. If that fails, it keeps the old state and throws.
   * @param signal aborted when the time limit, that of `start`, is over.
   */
  reload?(signal: AbortSignal): Promise<void> | void;
  /**
   * Prepares a changed configuration beside the one in force, without an effect on running work.
   * @param signal aborted when the time limit, that of `start`, is over, and when the change is
   * refused.
   * @returns a function that applies the change. It is called for all entries at once, and must not
   * throw.
   * @throws ConfigFault for mistakes that only a running server shows. The whole change is refused
   * then.
   */
  reconfigure?(next: Reconfiguration<C>, signal: AbortSignal): Promise<() => void> | (() => void);
  /**
   * Says how the running entry works, from memory and at once: probes ask often. While an entry
   * that is not `optional` says `failed`, the server is not ready. Without it, the entry works.
   */
  health?(): EntryHealth;
  /**
   * @param signal aborted when the time limit is over. A second later, `stop` is abandoned.
   * @param within milliseconds until the signal is aborted. Less than `stopLimit` when the whole
   *   server must stop in a hurry, for example after an uncaught error.
   */
  stop?(signal: AbortSignal, within?: number): Promise<void> | void;
  /** Milliseconds for `start`, `reload` and `reconfigure`. 10,000 by default. */
  readonly startLimit?: number;
  /** Milliseconds for `stop`. 10,000 by default. */
  readonly stopLimit?: number;
}
