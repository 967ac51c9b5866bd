import { fault } from '../base/errors.js';
import { suggestion } from '../base/nearest.js';
import { reportUnset } from './entries.js';
import type { ReadEntry } from './entry.js';
import type { Problems } from './problems.js';

/** Says why a package that an optional entry needs is missing; undefined if none is. */
type MissingPackage = (entry: ReadEntry) => Promise<string | undefined>;

/**
 * Disables the entries whose `unless` names an enabled entry, and the optional ones without their
 * packages, and reports the variables that the remaining ones miss. Optional entries that miss a
 * variable are disabled already. An entry that fails to start later counts as enabled, until
 * `Configuration.standIns` asks again.
 */
export async function disableEntries(
  entries: readonly ReadEntry[],
  problems: Problems,
  missingPackage: MissingPackage,
): Promise<readonly ReadEntry[]> {
  const faulty = new Set<ReadEntry>();
  for (const entry of entries) {
    for (const [index, name] of entry.unless.entries()) {
      const others = othersOf(entry, entries).map((other) => other.name);
      if (others.includes(name)) continue;
      faulty.add(entry);
      const unknown = fault('UNLESS_UNKNOWN', entry.section, name, suggestion(name, others));
      problems.add([...entry.path, 'unless', index], unknown, 'value');
    }
  }
  const reasons = new Map<ReadEntry, string | undefined>();
  const onCycle = (cycle: readonly ReadEntry[]) => {
    const [entry] = cycle;
    if (entry === undefined) return;
    const names = cycle.map(({ name }) => name);
    problems.add([...entry.path, 'unless'], fault('UNLESS_CYCLE', names), 'value');
    faulty.add(entry);
  };
  for (const entry of entries) await decide(entry, entries, reasons, [], onCycle, missingPackage);
  return entries.map((entry) => {
    const disabled = reasons.get(entry);
    const misses = disabled === undefined && reportUnset(entry, problems);
    return { ...entry, disabled, isFaulty: entry.isFaulty || faulty.has(entry) || misses };
  });
}

/**
 * Decides about an entry after the entries that its `unless` names.
 *
 * @param reasons receives why an entry is disabled, or undefined, once that is decided.
 */
async function decide(
  entry: ReadEntry,
  entries: readonly ReadEntry[],
  reasons: Map<ReadEntry, string | undefined>,
  asking: readonly ReadEntry[],
  onCycle: (cycle: readonly ReadEntry[]) => void,
  missingPackage: MissingPackage,
): Promise<void> {
  if (reasons.has(entry)) return;
  if (asking.includes(entry)) {
    onCycle([...asking.slice(asking.indexOf(entry)), entry]);
    return;
  }
  let reason = entry.disabled;
  for (const name of entry.unless) {
    const other = othersOf(entry, entries).find((candidate) => candidate.name === name);
    if (other === undefined) continue;
    await decide(other, entries, reasons, [...asking, entry], onCycle, missingPackage);
    const isEnabled = (reasons.get(other) ?? other.disabled) === undefined;
    if (isEnabled) reason ??= `${other.id} is enabled`;
  }
  reasons.set(entry, reason ?? (entry.optional ? await missingPackage(entry) : undefined));
}

/** The other entries of the same section. */
function othersOf(entry: ReadEntry, entries: readonly ReadEntry[]): readonly ReadEntry[] {
  return entries.filter((other) => other.section === entry.section && other !== entry);
}
