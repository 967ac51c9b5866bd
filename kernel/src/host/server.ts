import type { HostError, PluginError } from './base/errors.js';
import type { HostView } from './base/status.js';
import type { StopOptions } from './lifecycle/lifecycle.js';
import type { Logger } from './log/log.js';
import type { Budgets } from './plugin/budgets.js';
import type { ExtensionPoint, Extensions } from './plugin/extension-point.js';
import type { ConfigChange } from './reload/changes.js';

/** The result of a reload. @public */
export interface ReloadResult {
  /** The entries that read their own files again. */
  readonly entries: readonly string[];
  /** The entries that failed to. */
  readonly failures: readonly PluginError[];
  /** What changed in the configuration. Empty if it is the same, and if the change was refused. */
  readonly changes: readonly ConfigChange[];
  /** Why the change was refused, and nothing has changed: ConfigError, or ReloadError. */
  readonly refused?: HostError | undefined;
  /** From the request to the new configuration in force. */
  readonly milliseconds: number;
}

/** A composed server: valid, with registered plugins, and ready to be started. @public */
export interface Server {
  /** The phase of the server and the status of its entries. */
  readonly host: HostView;
  readonly log: Logger;
  /** What the entries bound, such as memory, and how much of it is in use. */
  readonly budgets: Budgets;
  /** The entries that have left with a reload and are not stopped yet. */
  readonly leaving: readonly string[];
  /** The current contributions to an extension point. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T>;
  /**
   * Starts all entries in order.
   *
   * @throws ConfigError if plugins found mistakes in the configuration, otherwise StartError with
   *   every failure. What had started was stopped again.
   */
  start(): Promise<void>;
  /**
   * Lets every running entry read its own files again, then reads the configuration again and
   * applies its changes.
   *
   * 1. The next revision is built and started beside the running one. If anything about it is
   *    wrong, nothing changes.
   * 2. It takes effect at once. Running work keeps the configuration it began with.
   * 3. Entries that left are stopped when the last work that pins them has ended.
   *
   * Reloads run one after the other. Never rejects: the result says what was refused and what
   * failed.
   *
   * @param config the new configuration, if the server was composed from an object.
   */
  reload(config?: object): Promise<ReloadResult>;
  /** Stops everything, also without a start or twice. Never rejects: returns the failures. */
  stop(options?: StopOptions): Promise<readonly PluginError[]>;
}
