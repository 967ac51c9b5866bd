import { recognizeAcrossCopies } from './across-copies.js';
import { placeOf } from './place.js';
import { formatProblem, type PluginIdentity, type Problem } from './problem.js';
import { withoutSecrets } from './without-secrets.js';

/**
 * Every error of the host: its code, and its message made of what is known where it occurs. A
 * message says what is wrong and what to do about it; the place (an entry, or file, line and
 * column) is added by the error that carries it.
 */
const MESSAGES = {
  // The file
  FILE_NOT_FOUND: (path: string) => `the file does not exist (${path}); name another one with -c FILE`,
  FILE_IS_FOLDER: (path: string) => `this is a folder (${path}); name a file in it with -c FILE`,
  FILE_UNREADABLE: (reason: string) => `the file cannot be read (${reason})`,
  FILE_NOT_A_MAP: (sections: readonly string[]) => `the file must be a map of sections: ${sections.join(', ')}`,
  YAML_INVALID: (reason: string) => `invalid YAML: ${reason}`,
  YAML_UNQUOTED_VARIABLE: () => `quote a variable inside { } or [ ]: "\${NAME}"`,
  YAML_DUPLICATE_KEY: () => 'this key occurs twice; remove one of them',
  YAML_UNKNOWN_ALIAS: (alias: string) =>
    `the alias *${alias} has no anchor; write &${alias} at a value above it, or put the text in quotes`,
  YAML_ALIAS_CYCLE: (alias: string) => `the alias "${alias}" refers to a value that contains it`,
  YAML_ALIAS_EXPANSION: () => 'too many aliases that refer to other aliases',
  VARIABLE_UNSET: (name: string) => `the variable ${name} is not set; set it, for example in .env, or write \${${name}:-default}`,
  VARIABLE_MALFORMED: () => `"\${" starts neither \${NAME} nor \${NAME:-default}; write "$\${" for a literal "\${"`,
  VARIABLE_NESTED: (name: string) => `the default of \${${name}} contains a variable; a default must be plain text`,
  SECTION_UNKNOWN: (suggestion: string) => `unknown section${suggestion}`,
  SECTION_IS_PLUGIN: (sections: readonly string[]) =>
    `unknown section; as the name of a plugin, write it under ${orOf(sections)}`,
  SECTION_MISSING: () => 'this section is missing or empty; without it, nothing can reach the server',
  SECTION_EMPTY: (alternative: string) => `this section is empty${alternative}, or remove the key`,
  SECTION_NOT_A_MAP: (alternative: string) => `must be a map${alternative}`,
  ENTRY_NOT_A_MAP: () => 'must be a map of options; write {} for none',
  ENTRY_NOT_OPTIONAL: (section: string) =>
    `an entry under ${section} cannot be optional: without it the server would be less protected than the file says`,
  UNLESS_UNKNOWN: (section: string, name: string, suggestion: string) => `${section} has no other entry "${name}"${suggestion}`,
  UNLESS_CYCLE: (names: readonly string[]) => `these entries depend on each other: ${names.join(' unless ')}`,

  // Options
  OPTION_UNKNOWN: (suggestion: string) => `unknown option${suggestion}`,
  OPTION_MISSING: (name: string) => `the option "${name}" is missing`,
  OPTION_INVALID: (message: string) => message,
  OPTION_AT_TOP_LEVEL: (entry: string) => `unknown option; the options of ${entry} are keys of the file's top level`,
  DEFAULT_INVALID: (message: string) =>
    `the plugin's own default for this option is invalid (${message}); set the option, and report this to the plugin's author`,
  CHECK_FAILED: (reason: string) => `the plugin's check failed: ${reason}`,
  CHECK_RESULT: (method: string, found: string) =>
    `the plugin's ${method}() returned ${found}; it must return an array of { path, message }, empty if all is well`,

  // Loading a plugin
  USE_INVALID: (use: string) =>
    `"${use}" is not a valid plugin reference; write a short name, a package name, ` +
    'or a path that is absolute or starts with ./ or ../',
  PLUGIN_NOT_INSTALLED: (names: readonly string[], isKey: boolean, likely: string | undefined) =>
    isKey
      ? `the entry has no "use", so its key names the plugin, and ${names[0]} is not installed; ${
          likely === undefined ? `add "use" with the name or the path of a plugin, or ${installOf(names)}` : `add use: ${likely}`
        }`
      : `the plugin ${names[0]} is not installed${likely === undefined ? `; ${installOf(names)}` : `, did you mean "${likely}"?`}`,
  PLUGIN_OF_OTHER_SECTION: (name: string, sections: readonly string[]) =>
    `"${name}" is a plugin of another section; move it to ${orOf(sections)}`,
  PACKAGE_NOT_INSTALLED: (name: string) =>
    `the package ${packageName(name)} is not installed; check the name, then run: npm install ${packageName(name)}`,
  MODULE_NOT_FOUND: (path: string) => `there is no module at ${path}; check the path`,
  PLUGIN_NOT_FOUND: (path: string, similar: string | undefined) =>
    `no plugin was found at ${path}${similar === undefined ? '' : `, did you mean "${similar}"?`}`,
  PLUGIN_FOLDER_EMPTY: (folder: string) =>
    `the folder ${folder} is not a plugin: it has neither a package.json with "exports" nor an index.js`,
  PLUGIN_UNRESOLVED: (name: string, reason: string) => `the package ${name} cannot be loaded: ${reason}`,
  PLUGIN_IMPORT_FAILED: (path: string, reason: string) => `the plugin at ${path} cannot be loaded: ${reason}`,
  NOT_A_PLUGIN: (path: string, found: string) =>
    `${path} is not a plugin: ${found}; export the result of definePlugin() of @plugboard/kernel as the default`,
  PLUGIN_COMMONJS: (path: string) =>
    `Node.js loads ${path} as a CommonJS module; add "type": "module" to the package.json beside it and build it as an ES module`,
  PLUGIN_IMPORT_TIMED_OUT: (path: string, seconds: number) =>
    `the plugin at ${path} was not loaded within ${seconds} s: its module awaits something at the top level; await it in start()`,
  API_TOO_NEW: (plugin: string, version: unknown, own: string, cure: string) =>
    `${plugin} needs plugin API ${version}, which ${own} does not have; ${cure}`,
  API_TOO_OLD: (plugin: string, version: number, own: string) =>
    `${plugin} was written for plugin API ${version}, which ${own} no longer has; update the plugin`,
  DEFINITION_INCOMPLETE: (plugin: string, member: string) => `${plugin} does not define ${member}`,
  OPTION_SCHEMA_INVALID: (plugin: string, reason: string) =>
    `${plugin} has an invalid option schema: ${reason}; its author must correct configSchema there`,

  OPTION_RESERVED: (option: string, section: string) =>
    `the plugin has an option "${option}", which every entry under ${section} has: it would never reach the plugin; ` +
    'its author must rename it',

  // Warnings
  PLUGIN_UPDATED: (installed: string, running: string) =>
    `version ${installed} is installed, ${running} runs: restart the server to use it`,
  PLUGIN_CHANGED: () => 'its module has changed since the server loaded it: restart the server to use it',
  KERNEL_COPY: (name: string, version: string, path: string, own: string, cure: string) =>
    `loads a second copy of the kernel, ${name} ${version} at ${path}, beside ${own}; ${cure}`,
  PLUGIN_DEPRECATED: (instead: string) => `the plugin is deprecated: ${instead}`,
  POINT_UNREAD: (entries: readonly string[], point: string, cure: string) =>
    `${entries.join(', ')} ${entries.length === 1 ? 'contributes' : 'contribute'} to ${point}, which no entry reads; ${cure}`,
  OPTION_DEPRECATED: (description: string) => `this option is deprecated${description === '' ? '' : `: ${description}`}`,

  // Registration
  REGISTER_FAILED: (reason: string) => `cannot be registered: ${reason}`,
  REGISTER_TIMED_OUT: (entry: string, seconds: number) =>
    `the register() of ${entry} did not return within ${seconds} s; move slow work to start()`,
  REGISTER_FAILED_IN_COPY: (reason: string, copy: string, own: string, cure: string) =>
    `cannot be registered: ${reason}. It loads another copy of the kernel (${copy}) than this program (${own}); ${cure}`,
  REGISTER_ASYNC: () => 'register() must be synchronous and return nothing or an object with start and stop',
  REGISTER_OVER: (entry: string, action: string) => `${entry} may ${action} only while its register() runs`,
  LATE_TOO_EARLY: (entry: string) => `${entry} cannot use a point that it reads with late() before the server runs`,
  STATE_KEY_INVALID: (entry: string, mistake: string) => `${entry} used an invalid key of ctx.state: ${mistake}`,
  STATE_VALUE_INVALID: (entry: string, key: string, mistake: string) =>
    `${entry} put a value into ctx.state that is not JSON, under "${key}": ${mistake}`,
  STATE_VALUE_TOO_LARGE: (entry: string, key: string, bytes: number, limit: number) =>
    `${entry} put a value of ${bytes} bytes into ctx.state, under "${key}", and ${limit} is the limit`,
  STATE_EXPIRY_INVALID: (entry: string, key: string, expiresIn: unknown) =>
    `${entry} put a value into ctx.state that expires in ${String(expiresIn)} ms, under "${key}"; expiresIn is a positive integer`,
  STATE_FOREIGN: (entry: string, owner: string) =>
    `${entry} cannot apply changes that the ctx.state of ${owner} has made; each entry applies its own`,
  STATE_UNREAD: (entry: string) =>
    `${entry} uses ctx.state before what keeps it has started; write const { state } = ctx in register(), so that ` +
    'the entry starts after it',
  STATE_TOO_EARLY: (entry: string) => `${entry} cannot use ctx.state in register(); use it from start() on`,
  STATE_UNAVAILABLE: (entry: string) => `${entry} cannot use ctx.state: this server has nothing that keeps it`,
  POINT_INVALID: (method: string, found: string) =>
    `ctx.${method}() needs an extension point as its first argument, not ${found}; import one, ` +
    'or make one with defineExtensionPoint()',
  SECTION_WRONG: (found: readonly string[], needed: string | undefined, section: string, places: readonly string[]) => {
    if (places.length === 0) return `an entry under ${section} must contribute ${needed}; call ctx.contribute() in register()`;
    const instead = needed === undefined ? '' : `, not ${needed}`;
    return (
      `the plugin contributes ${found.join(' and ')}${instead}; move the entry to ${places.join(' or ')}, ` +
      'or correct its "use"'
    );
  },
  CONTRIBUTED_TWICE: (entry: string, other: string, name: string, point: string) =>
    `${entry} and ${other} both provide "${name}" at ${point}; rename one of them`,
  CONTRIBUTED_TWICE_BY_ONE: (entry: string, name: string, point: string) =>
    `${entry} contributes "${name}" to ${point} twice; pass another name as the third argument of ctx.contribute`,
  CONTRIBUTION_INVALID: (entry: string, name: string, point: string, mistake: string) =>
    `${entry} contributes "${name}" to ${point}, but ${mistake}`,
  CONTRIBUTES_NOTHING: (entry: string) =>
    `${entry} contributes nothing and has no start(); call ctx.contribute() in register(), ` +
    'or remove the entry from the configuration',
  ONLY_ONE_ALLOWED: (entry: string, other: string, point: string) =>
    entry === other
      ? `${entry} contributes twice to ${point}, which allows only one`
      : `${entry} and ${other} both provide ${point}, which allows only one; remove one of them`,
  POINT_EMPTY: (point: string) => `nothing provides ${point}; add the plugin that does to the configuration`,
  POINT_NEEDED: (point: string) => `needs ${point}, which no entry of this file provides; add one that does`,
  START_CYCLE: (steps: readonly string[]) => `circular dependency: ${steps.join('; ')}`,

  START_AFTER_STOP: () => 'this server was stopped and does not start again; compose another one',

  // Start, reload and stop of an entry
  START_FAILED: (reason: string) => `did not start: ${reason}`,
  START_TIMED_OUT: (seconds: number) => `did not start within ${seconds} s; check that the services it connects to are reachable`,
  RELOAD_FAILED: (reason: string) => `did not reload: ${reason}`,
  RECONFIGURE_FAILED: (reason: string) => `does not accept the changed configuration: ${reason}`,
  RECONFIGURE_TIMED_OUT: (seconds: number) => `did not prepare the changed configuration within ${seconds} s`,
  RECONFIGURE_BROKEN: (reason: string) => `failed to apply the changed configuration; restart the server: ${reason}`,
  RESTART_NEEDED: () => 'cannot change while the server runs; undo the change, or restart the server',
  STOP_FAILED: (reason: string) => `did not stop cleanly: ${reason}`,
  STOP_TIMED_OUT: (seconds: number) => `did not stop within ${seconds} s and was abandoned`,
  TIME_LIMIT: (seconds: number) => `it took longer than ${seconds} s`,
  STOP_REQUESTED: () => 'the server was asked to stop',
  STOPPED_BEFORE_START: () => 'the server was asked to stop before it had started',

  // Values
  DURATION_INVALID: (text: string) => `"${text}" is not a duration; write 500ms, 30s, 10m, 24h or 90d`,
  SIZE_INVALID: (text: string) => `"${text}" is not a size; write 512b, 64kb, 20mb or 1gb`,

  // Defects of the host
  STATUS_IMPOSSIBLE: (entry: string, from: string, to: string) => `${entry} cannot become ${to} from ${from}`,
} as const satisfies Record<string, (...args: never[]) => string>;

type Messages = typeof MESSAGES;

/** The code of an error of the host, for programs. @public */
export type HostErrorCode = keyof Messages | 'CONFIG_INVALID' | 'NOT_STARTED' | 'NOT_RELOADED';

/** What is wrong, for programs and for people. @public */
export interface Fault {
  readonly code: HostErrorCode;
  readonly message: string;
}

/** Looks up a message. */
export function fault<C extends keyof Messages>(code: C, ...args: Parameters<Messages[C]>): Fault {
  return { code, message: messageOf(code, args) };
}

/** An error with a code for programs, and a message that says what to do. @public */
export class HostError extends Error {
  override readonly name: string = 'HostError';

  static {
    recognizeAcrossCopies(HostError, 'HostError');
  }

  constructor(
    readonly code: HostErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export function hostError<C extends keyof Messages>(code: C, ...args: Parameters<Messages[C]>): HostError {
  return new HostError(code, messageOf(code, args));
}

function messageOf<C extends keyof Messages>(code: C, args: Parameters<Messages[C]>): string {
  const message = MESSAGES[code] as (...args: Parameters<Messages[C]>) => string;
  return message(...args);
}

/** All mistakes in the configuration, in the order of the file. Nothing was started. @public */
export class ConfigError extends HostError {
  override readonly name = 'ConfigError';

  static {
    recognizeAcrossCopies(ConfigError, 'ConfigError');
  }
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const sorted = problems.toSorted(
      (a, b) => (a.position?.line ?? 0) - (b.position?.line ?? 0) || (a.position?.column ?? 0) - (b.position?.column ?? 0),
    );
    super('CONFIG_INVALID', sorted.map(formatProblem).join('\n'));
    this.problems = sorted;
  }

  /** The same error for the program that embeds the server: plugins may have quoted secrets. */
  redacted(redact: (text: string) => string): ConfigError {
    return new ConfigError(this.problems.map((problem) => ({ ...problem, message: redact(problem.message) })));
  }
}

/**
 * A plugin failed in its `start`, `reload` or `stop`. `cause` is what it threw: what a server
 * returns is a copy without secrets.
 *
 * @public
 */
export class PluginError extends HostError {
  override readonly name = 'PluginError';

  static {
    recognizeAcrossCopies(PluginError, 'PluginError');
  }

  readonly #fault: Fault;
  readonly #place: string | undefined;

  constructor(
    readonly entry: string,
    readonly plugin: PluginIdentity,
    fault: Fault,
    { cause, place }: { readonly cause?: unknown; readonly place?: string | undefined } = {},
  ) {
    const { name, version, path } = plugin;
    super(fault.code, `${place === undefined ? '' : `${place} `}${entry} ${fault.message} (plugin ${name} ${version}, ${path})`, {
      cause,
    });
    this.#fault = fault;
    this.#place = place;
  }

  /** The same error with the place of the entry in the file: `plugboard.yaml:12:3`. */
  at(place: string | undefined): PluginError {
    return new PluginError(this.entry, this.plugin, this.#fault, { cause: this.cause, place });
  }

  /** The same error for the program that embeds the server. */
  redacted(redact: (text: string) => string): PluginError {
    const fault = { ...this.#fault, message: redact(this.#fault.message) };
    return new PluginError(this.entry, this.plugin, fault, { cause: withoutSecrets(this.cause, redact), place: this.#place });
  }
}

/** The server did not start. Everything that had started was stopped again. @public */
export class StartError extends HostError {
  override readonly name = 'StartError';

  static {
    recognizeAcrossCopies(StartError, 'StartError');
  }

  /** @param failures why the server did not start, then what failed while the rest was stopped. */
  constructor(readonly failures: readonly PluginError[]) {
    super('NOT_STARTED', failures.map(({ message }) => message).join('\n') || MESSAGES.STOPPED_BEFORE_START());
  }
}

/** A changed configuration could not be applied. The previous one stays in effect. */
export class ReloadError extends HostError {
  override readonly name = 'ReloadError';

  /** @param failures the entries that did not start, and those that failed to stop afterwards. */
  constructor(readonly failures: readonly PluginError[]) {
    super('NOT_RELOADED', failures.map(({ message }) => message).join('\n') || MESSAGES.STOP_REQUESTED());
  }
}

/** Describes a thrown value as half a sentence. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return `it threw ${shownValue(error)}, which is not an Error`;
  if (error.message !== '') return isDefect(error) ? withPlace(error.message, error) : error.message;
  // A refused connection to a name with several addresses is an AggregateError without a message.
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join('; ');
  return error.name;
}

/** Describes a thrown value as half a sentence that ends with its file and line, if known. */
export function reasonWithPlace(error: unknown): string {
  const reason = reasonOf(error);
  return isDefect(error) ? reason : withPlace(reason, error);
}

/** Whether an error says that the code is wrong, so that its place helps more than its message. */
function isDefect(error: unknown): boolean {
  return [TypeError, ReferenceError, RangeError, SyntaxError].some((type) => error instanceof type);
}

function withPlace(reason: string, error: unknown): string {
  const place = placeOf(error);
  return place === undefined ? reason : `${reason}, at ${place}`;
}

/** A thrown value that is not an error, for a message. Reading it may fail, too. */
function shownValue(value: unknown): string {
  try {
    return typeof value === 'string' ? JSON.stringify(value) : String(value);
  } catch {
    return 'a value without a text';
  }
}

/** What to install, as no command to copy: short names mean several packages, perhaps anybody's. */
function installOf(names: readonly string[]): string {
  const [first = ''] = names;
  if (names.length === 1) return `check the name, and install the package ${packageName(first)}`;
  return `install the one you mean: ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

/** `a or b`, in backticks. */
function orOf(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(' or ');
}

/** `@you/greeter` of `@you/greeter/sub`. */
export function packageName(name: string): string {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}
