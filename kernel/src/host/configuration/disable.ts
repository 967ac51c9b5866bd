import { suggestion } from '../base/nearest.js';
import { type Entry, reportUnset } from './entries.js';
import type { Problems } from './problems.js';

/**
 * Withdraws the entries whose `unless` names one that is there; those that name a variable without a value have been already. Of what is left, tells
 * which variables are missing. An entry that only fails to start later was there: nothing comes in its place.
 */
export function disableEntries(entries: readonly Entry[], problems: Problems): void {
  for (const entry of entries) {
    for (const [index, name] of entry.unless.entries()) {
      const others = entries.filter((other) => other.section === entry.section && other !== entry).map((other) => other.name);
      if (others.includes(name)) continue;
      entry.faulty = true;
      problems.add(
        [...entry.path, 'unless', index],
        `no other entry of ${entry.section} is called "${name}"${suggestion(name, others)}`,
        'value',
      );
    }
  }
  const decided = new Set<Entry>();
  for (const entry of entries) decide(entry, entries, decided, [], problems);
  for (const entry of entries) {
    if (entry.disabled === undefined && reportUnset(entry, problems)) entry.faulty = true;
  }
}

/** Whether an entry is there depends on whether those it names are, and so on. */
function decide(
  entry: Entry,
  entries: readonly Entry[],
  decided: Set<Entry>,
  asking: readonly Entry[],
  problems: Problems,
): void {
  if (decided.has(entry)) return;
  if (asking.includes(entry)) {
    const circle = [...asking.slice(asking.indexOf(entry)), entry].map(({ name }) => name).join(' unless ');
    problems.add([...entry.path, 'unless'], `these entries wait for one another: ${circle}`, 'value');
    entry.faulty = true;
    return;
  }
  for (const name of entry.unless) {
    const other = entries.find((candidate) => candidate.section === entry.section && candidate.name === name);
    if (other === undefined || other === entry) continue;
    decide(other, entries, decided, [...asking, entry], problems);
    if (other.disabled === undefined) entry.disabled ??= `${other.id} is there`;
  }
  decided.add(entry);
}
