import { resolve } from 'node:path';
import { fault, HostError } from '../base/errors.js';
import { synonymOf } from '../base/nearest.js';
import type { CredentialShapes } from '../log/redactor.js';
import { isModulePath } from '../options/package-name.js';
import { type Environment, readEnvironment } from '../options/variables.js';
import type { Diagnosis } from '../plugin/diagnosis.js';
import { Loader } from '../plugin/loader.js';
import type { CheckContext } from '../plugin/plugin.js';
import { ConfigFile } from './config-file.js';
import { ConfigObject, type ConfigSource } from './config-source.js';
import { configure } from './configure.js';
import { disableEntries } from './disable.js';
import { type FileChanges, type FileContents, FileReader } from './entries.js';
import type { ConfiguredEntry, LoadedEntry, ReadEntry } from './entry.js';
import type { FileLayout } from './file-layout.js';
import { Problems } from './problems.js';

/** The configuration file that is read by default. */
const DEFAULT_FILE = 'plugboard.yaml';

export interface ReadOptions extends FileChanges {
  readonly file?: string;
  /** The configuration as an object. `use` can be a plugin object; `${NAME}` is plain text. */
  readonly config?: object;
  readonly layout: FileLayout;
  /** The values of `${NAME}` in the file. By default the process's environment. */
  readonly env?: Environment;
  /** The working folder: packages are searched in it, and paths are relative to it. */
  readonly cwd?: string;
  /** Explains the accidents of plugin authors. By default nothing does. */
  readonly diagnosis?: Diagnosis;
}

/** A configuration whose plugins are loaded and whose options are checked. */
export interface Configuration {
  readonly source: ConfigSource;
  readonly layout: FileLayout;
  readonly contents: FileContents<ConfiguredEntry>;
  readonly loader: Loader;
  /** Texts that no log line may show. */
  readonly secrets: ReadonlySet<string>;
  /** The variables that hold them. */
  readonly secretVariables: ReadonlySet<string>;
  /** What the credentials of the loaded plugins look like. */
  readonly credentials: readonly CredentialShapes[];
  /** The mistakes. Later phases add theirs. */
  readonly problems: Problems;
  resolvePath(path: string): string;
  /**
   * The entries that `unless` disables no longer once others have failed, checked like all others.
   * @param failed the ids of the others.
   * @param isNew leaves out those that are known already.
   */
  standIns(failed: ReadonlySet<string>, isNew: (entry: ReadEntry) => boolean): Promise<readonly ConfiguredEntry[]>;
}

/**
 * Reads the configuration, loads its plugins and checks their options: the first three phases of
 * `compose`.
 * @param known the loader of an earlier revision: plugins that it has loaded are not loaded again.
 * @throws ConfigError if the file cannot be read.
 */
export async function readConfiguration(options: ReadOptions, known?: Loader): Promise<Configuration> {
  const { layout, cwd = process.cwd() } = options;
  const source = options.config
    ? new ConfigObject(options.config, resolve(cwd))
    : ConfigFile.read(options.file ?? DEFAULT_FILE, cwd);
  const problems = new Problems(source);
  if (source.broken) problems.throwIfAny();
  const env = source.hasVariables ? readEnvironment(source.folder, options.env ?? process.env) : {};
  const reader = new FileReader(source, layout, options, env, problems);
  const read = reader.read();

  const loader = known ?? new Loader(source.folder, cwd, { diagnosis: options.diagnosis, sections: layout.sections });
  const loadAll = (entries: readonly { readonly entry: ReadEntry; readonly neededBy?: string }[]) =>
    Promise.all(entries.map(({ entry, neededBy }) => load(entry, layout, loader, problems, neededBy)));
  const decide = (entries: readonly ReadEntry[]) =>
    disableEntries(entries, problems, async (entry) => {
      const missing = await missingPackage(entry, layout, loader);
      return missing && problems.withoutValues(entry.path, missing);
    });
  const decided = await decide(read.entries);
  const inFile = await loadAll(decided.map((entry) => ({ entry })));
  const loaded = reader.withTopLevelOptions([...inFile, ...(await loadAll(reader.needed(inFile)))], (name) =>
    loader.sectionsOf(name),
  );

  const secrets = { texts: new Set<string>(), variables: new Set<string>() };
  const resolvePath = (path: string) => resolve(source.folder, path);
  const check = checkContext({ ...read, entries: loaded }, resolvePath);
  const isInstalled = (name: string) => loader.isInstalled(name);
  const configured = (entry: LoadedEntry) => configure(entry, { ...check, isInstalled }, layout, secrets, problems);
  const entries = loaded.map(configured);
  const contents = { ...read, entries };
  const ofPlugins = new Set(entries.flatMap(({ plugin }) => plugin?.definition.credentials ?? []));
  const credentials = [{ fields: layout.secretFields }, ...ofPlugins];
  const { texts, variables: secretVariables } = secrets;
  const standIns: Configuration['standIns'] = async (failed, isNew) => {
    const again = await decide(read.entries.map((entry) => (failed.has(entry.id) ? { ...entry, disabled: 'it failed' } : entry)));
    const disabled = new Set(decided.flatMap(({ id, disabled: reason }) => (reason === undefined ? [] : [id])));
    const added = again.filter((entry) => entry.disabled === undefined && disabled.has(entry.id) && isNew(entry));
    return (await loadAll(added.map((entry) => ({ entry })))).map(configured);
  };
  return { standIns, source, layout, contents, loader, secrets: texts, secretVariables, credentials, problems, resolvePath };
}

/** The entries that are not disabled. */
export function enabledEntries<E extends ReadEntry>({ entries }: Pick<FileContents<E>, 'entries'>): readonly E[] {
  return entries.filter((entry) => entry.disabled === undefined);
}

/**
 * Loads the plugin of an entry that is not disabled.
 *
 * @param neededBy the path of the plugin that needs the entry, for one that the file does not have.
 */
async function load(
  entry: ReadEntry,
  layout: FileLayout,
  loader: Loader,
  problems: Problems,
  neededBy: string | undefined,
): Promise<LoadedEntry> {
  const { section, use, isUseKey, definition, disabled } = entry;
  // An entry without a valid `use` was reported before.
  if (disabled !== undefined || (use === '' && definition === undefined)) return { ...entry, plugin: undefined };
  try {
    if (definition) return { ...entry, plugin: loader.adopt(definition) };
    const prefix = prefixOf(section, layout);
    return { ...entry, plugin: await loader.load(use, prefix, { isKey: isUseKey, usual: usualPlugin(entry, layout), neededBy }) };
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    if (isUseKey) problems.add(entry.path, error);
    else problems.add([...entry.path, 'use'], error, 'value');
    return { ...entry, plugin: undefined, isFaulty: true };
  }
}

/** The package that an optional entry lacks: its plugin's, or one that its options name. */
async function missingPackage(
  { use, isUseKey, section, options }: ReadEntry,
  layout: FileLayout,
  loader: Loader,
): Promise<string | undefined> {
  if (isUseKey || use === '') return undefined;
  const prefix = prefixOf(section, layout);
  const missing = loader.missingPlugin(use, prefix);
  if (missing !== undefined) return fault('PACKAGE_NOT_INSTALLED', missing).message;
  const plugin = await loader.load(use, prefix).catch(() => undefined); // reported when it is loaded for the entry
  const named = plugin?.options.packages(options).find(({ name }) => !isModulePath(name) && !loader.isInstalled(name));
  return named && fault('PACKAGE_NOT_INSTALLED', named.name).message;
}

function prefixOf(section: string, { sections }: FileLayout): string {
  return sections[section]?.prefix ?? section;
}

/** What an entry without a `use` most likely means, by its options. */
function usualPlugin({ isUseKey, name, section, options }: ReadEntry, { sections, synonyms }: FileLayout): string | undefined {
  if (!isUseKey) return undefined;
  const { usual = {} } = sections[section] ?? {};
  const named = Object.entries(options).find(([key]) => synonymOf(key, ['use'], synonyms));
  const [
    ,
    value = Object.keys(options)
      .map((key) => usual[key])
      .find((plugin) => plugin !== undefined),
  ] = named ?? [];
  return typeof value === 'string' && /^[\w-]+$/.test(value) && value !== name ? value : undefined;
}

/** The keys of a section, or of those of its entries that set these options to these values. */
export function keysWhere(
  { keys, optionOf }: FileContents,
  section: string,
  where: Readonly<Record<string, unknown>> = {},
): readonly string[] {
  const wanted = Object.entries(where);
  return (keys.get(section) ?? []).filter((key) => wanted.every(([option, value]) => optionOf(section, key, option) === value));
}

function checkContext(contents: FileContents, resolvePath: (path: string) => string): Omit<CheckContext, 'readFile'> {
  const { entries, literals } = contents;
  const named = (section: string) => entries.filter((entry) => entry.section === section);
  return {
    entries: (section, where) => keysWhere(contents, section, where),
    disabled: (section) => named(section).flatMap(({ disabled, name }) => (disabled === undefined ? [] : [name])),
    literal: (section) => literals.get(section),
    resolvePath,
  };
}
