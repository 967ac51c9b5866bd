import { resolve } from 'node:path';
import { type Clock, type IdSource, systemClock, systemIds } from './base/ambient.js';
import { fault, HostError, reasonOf } from './base/errors.js';
import { ConfigFile } from './configuration/config-file.js';
import { ConfigObject } from './configuration/config-source.js';
import { configure } from './configuration/configure.js';
import { disableEntries } from './configuration/disable.js';
import { type Entry, type FileChanges, type FileContents, FileReader } from './configuration/entries.js';
import type { FileLayout } from './configuration/file-layout.js';
import { Problems } from './configuration/problems.js';
import { startOrder } from './lifecycle/order.js';
import { StatusBoard } from './lifecycle/status-board.js';
import type { LogSink } from './log/log.js';
import type { CredentialShapes } from './log/redactor.js';
import { createServerLog } from './log/server-log.js';
import { parseSize } from './options/size.js';
import { type Environment, readEnvironment } from './options/variables.js';
import { Budgets } from './plugin/budgets.js';
import { Loader } from './plugin/loader.js';
import type { CheckContext } from './plugin/plugin.js';
import { type Registered, type RegistrationDependencies, registerEntry, rootContainer } from './registration/register.js';
import { Registry } from './registration/registry.js';
import { Server } from './server.js';

/** The configuration file that is read by default. */
const DEFAULT_FILE = 'plugboard.yaml';

export interface ComposeOptions extends FileChanges {
  /** The configuration file. */
  readonly file?: string;
  /** The configuration as an object, instead of a file. `use` can be a plugin object, and `${NAME}` is plain text. */
  readonly config?: object;
  readonly layout: FileLayout;
  /** The values of `${NAME}` in the file. By default the process's environment. */
  readonly env?: Environment;
  /** The working folder: `file` and the paths in `config` are relative to it, and packages are searched in it. */
  readonly cwd?: string;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  /** Receives log lines. By default they go to standard error. */
  readonly logTo?: LogSink;
  /** Leaves out entries with mistakes instead of throwing, for callers that need only other entries. The server cannot be started. */
  readonly partial?: boolean;
}

/**
 * Composes a server from a configuration file. No phase has side effects; `start` of the result is the next phase.
 *
 * | phase | what happens |
 * | --- | --- |
 * | read | the file and its `.env` are read, variables are replaced, optional entries may be disabled |
 * | load | the plugins that the file uses are imported, and no others |
 * | configure | options are validated with the plugins' schemas, completed with defaults, and frozen; plugins run their `check` |
 * | register | plugins contribute to extension points and declare which they read |
 * | order | the start order follows from that |
 *
 * A mistake does not end a phase: it only excludes its entry from the next ones, so that all mistakes are found together.
 *
 * @throws ConfigError with all mistakes; with `partial` only if the file cannot be read.
 */
export async function compose(options: ComposeOptions): Promise<Server> {
  const { layout, clock = systemClock, ids = systemIds, cwd = process.cwd() } = options;

  const source = options.config
    ? new ConfigObject(options.config, resolve(cwd))
    : ConfigFile.read(options.file ?? DEFAULT_FILE, cwd);
  const problems = new Problems(source);
  if (source.broken) problems.throwIfAny();
  const env = source.hasVariables ? readEnvironment(source.folder, options.env ?? process.env) : {};
  const reader = new FileReader(source, layout, options, env, problems);
  const contents = reader.read();
  disableEntries(contents.entries, problems);

  const loader = new Loader(source.folder, cwd);
  await Promise.all(enabled(contents).map((entry) => load(entry, layout, loader, problems)));
  reader.readTopLevelOptions();

  const secrets = new Set<string>();
  const resolvePath = (path: string) => resolve(source.folder, path);
  const check = checkContext(contents, resolvePath);
  for (const entry of enabled(contents)) configure(entry, check, layout, secrets, problems);

  const registry = new Registry();
  const status = new StatusBoard(contents.literals);
  const serverLog = createServerLog({
    level: contents.log.level,
    buffer: contents.log.buffer === undefined ? undefined : parseSize(contents.log.buffer),
    auditFile: contents.log.audit === undefined ? undefined : resolvePath(contents.log.audit),
    secrets,
    credentials: [{ fields: layout.secretFields }, ...credentialsOf(contents)],
    clock,
    sink: options.logTo,
  });
  const { log } = serverLog;
  const budgets = new Budgets(clock, log);
  for (const budget of serverLog.budgets) budgets.add(budget);
  const dependencies = {
    registry,
    host: status,
    log,
    clock,
    ids,
    budgets,
    container: rootContainer({ clock, ids, host: status, budgets }),
    entries: check.entries,
    resolvePath,
  };
  const registered = enabled(contents).flatMap((entry) => register(entry, dependencies, problems));
  registry.seal();
  if (!problems.any) {
    reportMissingPoints(registered, registry, problems);
    for (const entry of registered) verify(entry, problems);
  }

  const order = inOrder(registered, registry, problems);
  if (!options.partial) problems.throwIfAny();

  return new Server({
    source,
    layout,
    contents,
    loader,
    registry,
    status,
    budgets,
    serverLog,
    clock,
    order,
    mistakes: problems.error,
  });
}

/** The entries that are not disabled. */
function enabled(contents: FileContents): Entry[] {
  return contents.entries.filter((entry) => entry.disabled === undefined);
}

/** What the credentials of the loaded plugins look like. */
function credentialsOf(contents: FileContents): Set<CredentialShapes> {
  return new Set(contents.entries.flatMap(({ plugin }) => plugin?.definition.credentials ?? []));
}

async function load(entry: Entry, { sections }: FileLayout, loader: Loader, problems: Problems): Promise<void> {
  if (entry.use === '' && entry.definition === undefined) return; // reported before
  try {
    const prefix = sections[entry.section]?.prefix ?? entry.section;
    entry.plugin = entry.definition ? loader.adopt(entry.definition) : await loader.load(entry.use, prefix);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    entry.faulty = true;
    if (entry.use === entry.name) problems.add(entry.path, error);
    else problems.add([...entry.path, 'use'], error, 'value');
  }
}

function checkContext({ entries, literals, keys }: FileContents, resolvePath: (path: string) => string): CheckContext {
  const named = (section: string) => entries.filter((entry) => entry.section === section);
  return {
    entries: (section) => keys.get(section) ?? [],
    disabled: (section) => named(section).flatMap(({ disabled, name }) => (disabled === undefined ? [] : [name])),
    literal: (section) => literals.get(section),
    resolvePath,
  };
}

function register(entry: Entry, dependencies: RegistrationDependencies, problems: Problems): Registered[] {
  const { plugin } = entry;
  if (plugin === undefined || entry.faulty) return [];
  try {
    return [registerEntry(entry, plugin, dependencies)];
  } catch (error) {
    dependencies.registry.disable(entry.id);
    const failed = fault('REGISTER_FAILED', reasonOf(error));
    if (entry.optional) entry.disabled = `it ${failed.message}`;
    else problems.add(entry.path, failed, 'key', plugin);
    return [];
  }
}

function reportMissingPoints(registered: readonly Registered[], registry: Registry, problems: Problems): void {
  for (const { entry, plugin, allReads } of registered) {
    for (const point of allReads) {
      if (point.discipline !== 'one' || registry.at(point).length > 0) continue;
      problems.add(entry.path, fault('POINT_NEEDED', point.id), 'key', plugin);
    }
  }
}

function verify({ entry, plugin, lifecycle }: Registered, problems: Problems): void {
  try {
    for (const { path, message } of lifecycle.verify?.() ?? [])
      problems.add([...entry.optionsPath, ...path], fault('OPTION_INVALID', message), 'value', plugin);
  } catch (error) {
    problems.add(entry.path, fault('CHECK_FAILED', reasonOf(error)), 'key', plugin);
  }
}

function inOrder(registered: readonly Registered[], registry: Registry, problems: Problems): readonly Registered[] {
  const result = startOrder(registered);
  if ('order' in result) return result.order;
  const [first] = result.cycle;
  const name = (key: symbol) => registry.points().find(({ point }) => point.key === key)?.point.id;
  const steps = result.cycle.map(({ reader, point, contributor }) => `${reader.id} reads ${name(point)} of ${contributor.id}`);
  problems.add(first?.reader.entry.path ?? [], fault('START_CYCLE', steps));
  return [];
}
