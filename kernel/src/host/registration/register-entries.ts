import { isDeepStrictEqual } from 'node:util';
import { type Fault, fault, hostError, reasonOf, reasonWithPlace } from '../base/errors.js';
import { KERNEL } from '../base/kernel-package.js';
import type { PluginIdentity } from '../base/problem.js';
import { resultMistake } from '../configuration/configure.js';
import type { ConfiguredEntry } from '../configuration/entry.js';
import type { FileLayout } from '../configuration/file-layout.js';
import { enabledEntries } from '../configuration/read-configuration.js';
import { startOrder } from '../lifecycle/order.js';
import { type Diagnosis, NO_DIAGNOSIS } from '../plugin/diagnosis.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import { type Registered, type RegistrationDependencies, registerEntry } from './register.js';
import type { Revision } from './revision.js';

/** What the registrations of all entries share, and what explains their accidents. */
export interface RegisterEntriesDependencies extends Omit<RegistrationDependencies, 'revision'> {
  readonly diagnosis?: Diagnosis | undefined;
}

/** Milliseconds that the registrations of all entries may take together. */
const REGISTER_LIMIT = 10_000;

/**
 * Registers the entries of a revision and derives their start order: the last two phases of
 * `compose`. Mistakes are added to the configuration's problems.
 * @param kept the entries that stay from the revision before, by their ids. They are not registered
 * again, and keep what they contribute.
 */
export function registerEntries(
  revision: Revision,
  dependencies: RegisterEntriesDependencies,
  kept: ReadonlyMap<string, Registered> = new Map(),
): void {
  const { registry, configuration } = revision;
  const registered = registerAll(enabledEntries(configuration.contents), revision, dependencies, kept);
  registry.seal();
  if (!configuration.problems.any) {
    reportMissingPoints(registered, revision);
    for (const one of registered) if (!kept.has(one.id)) verify(one, revision);
  }
  revision.order = inOrder(registered, revision);
}

/** Registers entries beside a sealed revision, last in the order. Mistakes become problems. */
export function registerLate(
  entries: readonly ConfiguredEntry[],
  revision: Revision,
  dependencies: RegisterEntriesDependencies,
): readonly Registered[] {
  const registered = registerAll(entries, revision, dependencies);
  if (!revision.configuration.problems.any) for (const one of registered) verify(one, revision);
  revision.order = [...revision.order, ...registered];
  return registered;
}

function registerAll(
  entries: readonly ConfiguredEntry[],
  revision: Revision,
  { diagnosis = NO_DIAGNOSIS, ...dependencies }: RegisterEntriesDependencies,
  kept: ReadonlyMap<string, Registered> = new Map(),
): readonly Registered[] {
  const registered: Registered[] = [];
  let current: ConfiguredEntry | undefined;
  const isDone = diagnosis.runWithin(REGISTER_LIMIT, () => {
    for (const entry of entries) {
      current = entry;
      const stays = kept.get(entry.id);
      registered.push(...(stays ? [keep(entry, stays, revision)] : register(entry, revision, { ...dependencies, revision })));
    }
  });
  if (!isDone && current) {
    const { id, path, plugin } = current;
    revision.configuration.problems.add(path, fault('REGISTER_TIMED_OUT', id, REGISTER_LIMIT / 1000), 'key', plugin);
  }
  return registered;
}

/** Moves the contributions of an entry to the revision, with its new shared options. */
function keep(entry: ConfiguredEntry, stays: Registered, { registry, configuration }: Revision): Registered {
  try {
    for (const { point, contribution } of stays.scope.revision.registry.of(entry.id)) {
      const { shared } = isDeepStrictEqual(contribution.shared, entry.shared) ? contribution : entry;
      registry.contribute(point, shared === contribution.shared ? contribution : { ...contribution, shared });
    }
  } catch (error) {
    configuration.problems.add(entry.path, fault('REGISTER_FAILED', reasonOf(error)), 'key', entry.plugin);
  }
  return { ...stays, entry, optional: entry.optional };
}

function register(entry: ConfiguredEntry, revision: Revision, dependencies: RegistrationDependencies): Registered[] {
  const { registry, configuration } = revision;
  const { id, optional, plugin } = entry;
  if (plugin === undefined || entry.isFaulty) return [];
  try {
    const registration = registerEntry(entry, plugin, dependencies);
    const points = registry.of(id).map(({ point }) => point.id);
    checkSection(entry.section, [...new Set(points)], configuration.layout);
    return [{ entry, id, optional, plugin, ...registration }];
  } catch (error) {
    registry.disable(id);
    const failed = registerFault(error, plugin);
    if (optional) revision.disable(id, `it ${failed.message}`);
    else configuration.problems.add(entry.path, failed, 'key', plugin);
    return [];
  }
}

/** A failure is often the consequence of a second copy of the kernel, such as a global one. */
function registerFault(error: unknown, { kernelCopy: copy }: LoadedPlugin): Fault {
  if (copy === undefined) return fault('REGISTER_FAILED', reasonOf(error));
  const where = ({ version, path }: PluginIdentity) => `${version} at ${path}`;
  return fault('REGISTER_FAILED_IN_COPY', reasonOf(error), where(copy), where(KERNEL), copy.cure);
}

function reportMissingPoints(registered: readonly Registered[], { registry, configuration }: Revision): void {
  for (const { entry, plugin, allReads } of registered) {
    for (const point of allReads) {
      if (point.discipline !== 'one' || registry.at(point).length > 0) continue;
      configuration.problems.add(entry.path, fault('POINT_NEEDED', point.id), 'key', plugin);
    }
  }
}

function verify({ entry, plugin, lifecycle }: Registered, { configuration: { problems } }: Revision): void {
  try {
    const found = lifecycle.verify?.() ?? [];
    const mistake = resultMistake(found);
    if (mistake !== undefined) problems.add(entry.path, fault('CHECK_RESULT', 'verify', mistake), 'key', plugin);
    else
      for (const { path, message } of found) {
        problems.add([...entry.optionsPath, ...path], fault('OPTION_INVALID', message), 'value', plugin);
      }
  } catch (error) {
    problems.add(entry.path, fault('CHECK_FAILED', reasonWithPlace(error)), 'key', plugin);
  }
}

function inOrder(registered: readonly Registered[], { registry, configuration }: Revision): readonly Registered[] {
  const result = startOrder(registered);
  if ('order' in result) return result.order;
  const [first] = result.cycle;
  const name = (key: symbol) => registry.points().find(({ point }) => point.key === key)?.point.id;
  const steps = result.cycle.map(({ reader, point, contributor }) => `${reader.id} reads ${name(point)} of ${contributor.id}`);
  configuration.problems.add(first?.reader.entry.path ?? [], fault('START_CYCLE', steps));
  return [];
}

/**
 * Refuses an entry in the wrong section of the file: each section that names a point is for plugins
 * that contribute to it, and no other section is.
 * @param contributes the ids of the points that the entry contributes to.
 * @throws HostError that says what it contributes and where it belongs.
 */
function checkSection(section: string, contributes: readonly string[], { sections }: FileLayout): void {
  const own = sections[section]?.provides;
  const homeOf = (id: string) => Object.entries(sections).find(([, { provides }]) => provides?.point === id);
  const foreign = contributes.filter((id) => homeOf(id) && id !== own?.point);
  if (own === undefined ? foreign.length === 0 : contributes.includes(own.point)) return;
  const found = (own === undefined ? foreign : contributes).map((id) => {
    const home = homeOf(id)?.[1].provides;
    return home === undefined ? id : `${home.name} (${id})`;
  });
  const homes = new Set(foreign.map((id) => homeOf(id)?.[0] ?? ''));
  const others = Object.keys(sections).filter((name) => sections[name]?.shape === 'map' && !sections[name]?.provides);
  const places = found.length === 0 ? [] : homes.size > 0 ? [...homes] : others;
  throw hostError('SECTION_WRONG', found, own && `${own.name} (${own.point})`, section, places);
}
