import { fault } from '../base/errors.js';
import { suggestion } from '../base/nearest.js';
import { type Entry, reportUnset } from './entries.js';
import type { Problems } from './problems.js';

/**
 * Disables the entries whose `unless` names an enabled entry, and reports the variables that the
 * remaining ones miss. Optional entries that miss a variable are disabled already. An entry that
 * fails to start later still counts as enabled here.
 */
export function disableEntries(entries: readonly Entry[], problems: Problems): void {
  for (const entry of entries) {
    for (const [index, name] of entry.unless.entries()) {
      const others = entries.filter((other) => other.section === entry.section && other !== entry).map((other) => other.name);
      if (others.includes(name)) continue;
      entry.faulty = true;
      const unknown = fault('UNLESS_UNKNOWN', entry.section, name, suggestion(name, others));
      problems.add([...entry.path, 'unless', index], unknown, 'value');
    }
  }
  const decided = new Set<Entry>();
  for (const entry of entries) decide(entry, entries, decided, [], problems);
  for (const entry of entries) {
    if (entry.disabled === undefined && reportUnset(entry, problems)) entry.faulty = true;
  }
}

/** Decides about an entry after the entries that its `unless` names. */
function decide(
  entry: Entry,
  entries: readonly Entry[],
  decided: Set<Entry>,
  asking: readonly Entry[],
  problems: Problems,
): void {
  if (decided.has(entry)) return;
  if (asking.includes(entry)) {
    const cycle = [...asking.slice(asking.indexOf(entry)), entry].map(({ name }) => name);
    problems.add([...entry.path, 'unless'], fault('UNLESS_CYCLE', cycle), 'value');
    entry.faulty = true;
    return;
  }
  for (const name of entry.unless) {
    const other = entries.find((candidate) => candidate.section === entry.section && candidate.name === name);
    if (other === undefined || other === entry) continue;
    decide(other, entries, decided, [...asking, entry], problems);
    if (other.disabled === undefined) entry.disabled ??= `${other.id} is enabled`;
  }
  decided.add(entry);
}
