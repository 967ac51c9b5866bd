import { UsageError } from '@plugboard/kernel/contracts';

/** The names of a new plugin. */
export interface PluginName {
  /** The name of the package: `plugboard-tool-weather`, `@you/weather`. */
  readonly packageName: string;
  /** The short name in lower case with hyphens, for files and entries: `weather`. */
  readonly short: string;
}

const PART = '[a-z0-9][a-z0-9._-]*';
/** What npm accepts as the name of a new package, with or without a scope. */
const PACKAGE_NAME = new RegExp(`^(?:@${PART}/)?${PART}$`);
/** The longest name that npm accepts. */
const MAX_LENGTH = 214;

/**
 * Derives the names of a plugin from the argument of the command. A bare word
 * gets the prefix that short names in `use` need: `weather` → `plugboard-tool-weather`.
 *
 * @param prefix the kind of plugin in package names: `tool`.
 * @throws UsageError if npm would not accept the name.
 */
export function pluginName(name: string, prefix: string): PluginName {
  if (!PACKAGE_NAME.test(name) || name.length > MAX_LENGTH) {
    throw new UsageError(
      `"${name}" is not a valid package name: use lower-case letters, digits, "-", "." and "_", ` +
        'for example "weather" or "@you/weather"',
    );
  }
  if (name.startsWith('@plugboard/'))
    throw new UsageError(`the scope @plugboard belongs to Plugboard: use your own, for example "@you/weather"`);
  const own = name.replace(/^@[^/]+\//, '');
  const short = own
    .replace(new RegExp(`^plugboard-(?:${prefix}-)?`), '')
    .replaceAll(/[._-]+/g, '-')
    .replace(/-$/, '');
  if (!/^[a-z]/.test(short)) {
    throw new UsageError(
      `"${name}" does not begin with a letter after its scope and prefix: file and class names are made from it`,
    );
  }
  return { packageName: name === own && !own.startsWith('plugboard-') ? `plugboard-${prefix}-${own}` : name, short };
}

/** `my-weather` → `MyWeather`. */
export function pascalCase(short: string): string {
  return short.replaceAll(/(?:^|-)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** `my-weather` → `myWeather`. */
export function camelCase(short: string): string {
  const name = pascalCase(short);
  return name.charAt(0).toLowerCase() + name.slice(1);
}
