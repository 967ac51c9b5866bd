/** Line and column of the file, counted from 1. @public */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A place in the configuration: `['greeters', 'hello', 'name']`. @public */
export type ConfigPath = readonly (string | number)[];

/** A plugin as it was found on this machine. @public */
export interface PluginIdentity {
  /** The package. */
  readonly name: string;
  readonly version: string;
  /** The module that was loaded. */
  readonly path: string;
}

/** One mistake in the configuration. @public */
export interface Problem {
  /** A `HostErrorCode`. */
  readonly code: string;
  readonly message: string;
  /** The file, by the name that the user gave it. */
  readonly file: string;
  readonly position: Position | undefined;
  readonly path: ConfigPath;
  /** The plugin of the entry, with its path if the mistake is in the plugin. */
  readonly plugin?: (Pick<PluginIdentity, 'name' | 'version'> & Partial<PluginIdentity>) | undefined;
}

/** `plugboard.yaml:12:5 greeters.hello.nam: unknown option (plugin @you/greeter 1.0.0)` */
export function formatProblem({ file, position, path, message, plugin }: Problem): string {
  const place = position === undefined ? file : `${file}:${position.line}:${position.column}`;
  const about = path.length > 0 ? ` ${formatPath(path)}` : '';
  const from = plugin === undefined ? '' : ` (plugin ${plugin.name} ${plugin.version}${plugin.path ? `, ${plugin.path}` : ''})`;
  return `${place}${about}: ${message}${from}`;
}

/** `greeters.hello.words[0]`. A key that is not a plain word is quoted: `greeters["my.hello"]`. */
export function formatPath(path: ConfigPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\w$-]+$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}
