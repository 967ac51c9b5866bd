import type { Clock, IdSource } from './host/base/ambient.js';
import { compose as composeHost } from './host/compose.js';
import type { LogSink } from './host/log/log.js';
import type { Environment } from './host/options/variables.js';
import type { DefinedPlugin } from './host/plugin/plugin.js';
import type { Server } from './host/server.js';
import { layout } from './layout.js';

/** An entry of a configuration: the plugin that serves it, and the plugin's options. @public */
export interface EntryConfig {
  /** A short name, a package name, a path, or a plugin object. By default the entry's own key. */
  readonly use?: string | DefinedPlugin;
  readonly [option: string]: unknown;
}

/** A whole configuration as an object, with the sections and keys of `plugboard.yaml`. @public */
export interface ServerConfig {
  readonly transports: Readonly<Record<string, EntryConfig>>;
  readonly auth?: Readonly<Record<string, EntryConfig>> | 'open';
  readonly sessions?: EntryConfig;
  readonly models?: Readonly<Record<string, EntryConfig>>;
  readonly tools?: Readonly<Record<string, EntryConfig>>;
  readonly plugins?: Readonly<Record<string, EntryConfig>>;
  readonly runtime?: EntryConfig;
  readonly log?: { readonly level?: string };
  /** The options of the runtime: `agents`, `projects`, `defaultAgent`, `limits`. */
  readonly [option: string]: unknown;
}

/** How to compose a server, and what replaces the process's own surroundings. @public */
export interface ComposeOptions {
  /** The configuration file. By default `plugboard.yaml`. */
  readonly file?: string;
  /** The configuration as an object. `use` can be a plugin object; `${NAME}` is plain text. */
  readonly config?: ServerConfig;
  /** Sections of the configuration to leave out: `['transports']`. */
  readonly omit?: readonly string[];
  /**
   * Sections to add or to replace. A function receives the section as the configuration has it,
   * with variables as `${NAME}`, and returns the new one, where `use` can be a plugin object:
   * `{ models: (models) => mapValues(models, () => ({ use: recordedModel })) }`.
   */
  readonly replace?: Readonly<Record<string, object | string | ((section: unknown) => unknown)>>;
  /** The working folder: packages are searched in it, and paths are relative to it. */
  readonly cwd?: string;
  /** The values of `${NAME}` in the file. By default the process's environment. */
  readonly env?: Environment;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  /** Receives the log, one JSON line at a time. By default it goes to standard error. */
  readonly logTo?: LogSink;
}

/**
 * Composes a server to run inside a program. Plugins are loaded, options are validated, nothing is
 * opened.
 *
 * ```ts
 * const server = await compose({
 *   config: {
 *     transports: { http: { port: 8080 }, 'chat-completions': {} },
 *     models: { fast: { use: 'openai', model: 'gpt-5-mini', apiKey: process.env.OPENAI_API_KEY } },
 *     tools: { dice: { use: dicePlugin } },
 *     agents: { assistant: { model: 'fast', tools: ['dice'] } },
 *   },
 * });
 * await server.start();
 * // …
 * await server.stop();
 * ```
 *
 * The program handles signals itself: it calls `stop`, which never rejects and returns what failed.
 *
 * @throws ConfigError with all mistakes in the configuration.
 * @public
 */
export function compose(options: ComposeOptions = {}): Promise<Server> {
  return composeHost({ ...options, layout });
}
