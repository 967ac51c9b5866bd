/** Both count from 1, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A place in the configuration: `['models', 'fast', 'model']`. */
export type ConfigPath = readonly (string | number)[];

/** Which plugin has to do with an error, as it was found on this machine. */
export interface PluginIdentity {
  readonly name: string;
  readonly version: string;
  /** The module that was loaded. */
  readonly path: string;
}

/** One thing that is wrong with the configuration. */
export interface Problem {
  /** The file, as the user would name it. */
  readonly file: string;
  readonly position: Position | undefined;
  readonly path: ConfigPath;
  /** What is wrong and what would be right. */
  readonly message: string;
  readonly plugin?: Pick<PluginIdentity, 'name' | 'version'> | undefined;
}

/** `plugboard.yaml:12:5 models.fast.modle: unknown option, did you mean "model"? (plugin @plugboard/model-openai 1.0.0)` */
export function formatProblem({ file, position, path, message, plugin }: Problem): string {
  const place = position === undefined ? file : `${file}:${position.line}:${position.column}`;
  const about = path.length > 0 ? ` ${formatPath(path)}` : '';
  const from = plugin === undefined ? '' : ` (plugin ${plugin.name} ${plugin.version})`;
  return `${place}${about}: ${message}${from}`;
}

/** `tools.files.args[0]`; a key that is no plain word is quoted: `tools["my.files"]`. */
export function formatPath(path: ConfigPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\w$-]+$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/** The configuration cannot be run: everything that is wrong with it, in the order of the file. Nothing was started. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code = 'CONFIG';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const sorted = problems.toSorted(
      (a, b) => (a.position?.line ?? 0) - (b.position?.line ?? 0) || (a.position?.column ?? 0) - (b.position?.column ?? 0),
    );
    super(sorted.map(formatProblem).join('\n'));
    this.problems = sorted;
  }
}

/** A plugin failed in its `start` or its `stop`. `cause` is what it threw. */
export class PluginError extends Error {
  override readonly name = 'PluginError';
  readonly code = 'PLUGIN';

  /** @param what what happened, as the end of a sentence that begins with the entry: `did not start within 10 s`. */
  constructor(
    readonly entry: string,
    readonly plugin: PluginIdentity,
    what: string,
    options: { readonly cause?: unknown } = {},
  ) {
    super(`${entry} ${what} (plugin ${plugin.name} ${plugin.version}, ${plugin.path})`, options);
  }
}

/** The server did not start. What had started was stopped again. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly code = 'START';

  /** @param failures first why it did not start, then what went wrong when the rest was stopped. */
  constructor(readonly failures: readonly PluginError[]) {
    super(failures.map((failure) => failure.message).join('\n') || 'the server was told to stop before it had started');
  }
}

/** What was thrown, as half a sentence. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return `threw ${typeof error === 'string' ? JSON.stringify(error) : String(error)}`;
  if (error.message !== '') return error.message;
  // A refused connection to a name with several addresses is an AggregateError without a message.
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join('; ');
  return error.name;
}
