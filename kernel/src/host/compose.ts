import { resolve } from 'node:path';
import { type Clock, type IdSource, systemClock, systemIds } from './base/ambient.js';
import { reasonOf } from './base/errors.js';
import { ConfigFile } from './configuration/config-file.js';
import { configure } from './configuration/configure.js';
import { disableEntries } from './configuration/disable.js';
import { type Entry, type FileChanges, type FileContents, FileReader } from './configuration/entries.js';
import type { FileLayout } from './configuration/file-layout.js';
import { Problems } from './configuration/problems.js';
import { startOrder } from './lifecycle/order.js';
import { StatusBoard } from './lifecycle/status-board.js';
import { createLogger, type LogSink } from './log/log.js';
import type { CredentialShapes } from './log/redactor.js';
import { type Environment, readEnvironment } from './options/variables.js';
import { LoadError, Loader } from './plugin/loader.js';
import type { CheckContext } from './plugin/plugin.js';
import { type Registered, type RegistrationDependencies, registerEntry, rootContainer } from './registration/register.js';
import { Registry } from './registration/registry.js';
import { Server } from './server.js';

export interface ComposeOptions extends FileChanges {
  /** The configuration file. */
  readonly file: string;
  readonly layout: FileLayout;
  /** What `${NAME}` in the file stands for; the process's environment where it is absent. */
  readonly env?: Environment;
  /** The working folder: what `file` is relative to, and a place where packages are looked for. */
  readonly cwd?: string;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  /** Where log lines go; standard error where it is absent. */
  readonly logTo?: LogSink;
  /** Whether entries with mistakes are left out instead, for whoever needs only some of the others. Nothing can be started then. */
  readonly partial?: boolean;
}

/**
 * Makes a server of a configuration file, through every phase that opens nothing; `start` of what comes back is the next one.
 *
 * | phase | what happens |
 * | --- | --- |
 * | read | the file and its `.env`; variables are replaced; entries that need not be there are disabled |
 * | load | the plugins that are used are imported, and no other |
 * | configure | options are checked against the plugins' schemas, defaults filled in, and frozen; plugins check what schemas cannot |
 * | register | plugins contribute to extension points and say which they read |
 * | order | who starts after whom follows from that |
 *
 * A fault does not end a phase, and keeps nothing from going on but the entry that it is in.
 *
 * @throws ConfigError with all that is wrong; where it is to be `partial`, only for a file that cannot be read.
 */
export async function compose(options: ComposeOptions): Promise<Server> {
  const { layout, clock = systemClock, ids = systemIds, cwd = process.cwd() } = options;

  const file = ConfigFile.read(options.file, cwd);
  const problems = new Problems(file);
  if (file.broken) problems.throwIfAny();
  const env = readEnvironment(file.folder, options.env ?? process.env);
  const reader = new FileReader(file, layout, options, env, problems);
  const contents = reader.read();
  disableEntries(contents.entries, problems);

  const loader = new Loader(file.folder, cwd);
  await Promise.all(present(contents).map((entry) => load(entry, layout, loader, problems)));
  reader.readTopLevelOptions();

  const secrets = new Set<string>();
  const resolvePath = (path: string) => resolve(file.folder, path);
  const check = checkContext(contents, resolvePath);
  for (const entry of present(contents)) configure(entry, check, layout, secrets, problems);

  const registry = new Registry();
  const status = new StatusBoard(contents.literals);
  const log = createLogger({
    level: contents.logLevel,
    secrets,
    credentials: credentialsOf(contents),
    clock,
    sink: options.logTo,
  });
  const dependencies = {
    registry,
    host: status,
    log,
    clock,
    ids,
    container: rootContainer({ clock, ids, host: status }),
    entries: check.entries,
    resolvePath,
  };
  const registered = present(contents).flatMap((entry) => register(entry, dependencies, problems));
  registry.seal();
  if (!problems.any) reportUnprovided(registered, registry, problems);

  const order = inOrder(registered, registry, problems);
  if (!options.partial) problems.throwIfAny();

  return new Server({ file, layout, contents, loader, registry, status, log, clock, order, mistakes: problems.error });
}

/** The entries that take part. */
function present(contents: FileContents): Entry[] {
  return contents.entries.filter((entry) => entry.disabled === undefined);
}

/** What the credentials of the loaded plugins look like. */
function credentialsOf(contents: FileContents): Set<CredentialShapes> {
  return new Set(contents.entries.flatMap(({ plugin }) => plugin?.definition.credentials ?? []));
}

async function load(entry: Entry, { sections }: FileLayout, loader: Loader, problems: Problems): Promise<void> {
  if (entry.use === '') return; // reported already
  try {
    entry.plugin = await loader.load(entry.use, sections[entry.section]?.prefix ?? entry.section);
  } catch (error) {
    if (!(error instanceof LoadError)) throw error;
    entry.faulty = true;
    if (entry.use === entry.name) problems.add(entry.path, error.message);
    else problems.add([...entry.path, 'use'], error.message, 'value');
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
    if (entry.optional) entry.disabled = `it cannot be registered: ${reasonOf(error)}`;
    else problems.add(entry.path, `cannot be registered: ${reasonOf(error)}`, 'key', plugin);
    return [];
  }
}

function reportUnprovided(registered: readonly Registered[], registry: Registry, problems: Problems): void {
  for (const { entry, plugin, looksAt } of registered) {
    for (const point of looksAt) {
      if (point.discipline !== 'one' || registry.at(point).length > 0) continue;
      problems.add(entry.path, `needs ${point}, which nothing in this file provides; is an entry missing?`, 'key', plugin);
    }
  }
}

function inOrder(registered: readonly Registered[], registry: Registry, problems: Problems): readonly Registered[] {
  const result = startOrder(registered);
  if ('order' in result) return result.order;
  const [first] = result.cycle;
  const name = (key: symbol) => registry.points().find(({ point }) => point.key === key)?.point.id;
  const steps = result.cycle.map(({ reader, point, contributor }) => `${reader.id} reads ${name(point)} of ${contributor.id}`);
  problems.add(first?.reader.entry.path ?? [], `no order to start in: ${steps.join(', which in turn, as ')}`);
  return [];
}
