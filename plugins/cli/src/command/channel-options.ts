import type { CommandOption } from '@plugboard/kernel/internal';
import { CONFIG_OPTION } from './config-option.js';

/** The options of the commands about channels. */
export const CHANNEL_OPTIONS: Readonly<Record<string, CommandOption>> = {
  config: CONFIG_OPTION,
  entry: { value: 'ENTRY', description: 'only this channel, by its key under transports' },
  json: { description: 'print JSON' },
};

/** A time for people and programs: ISO 8601. @param ms since the epoch. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Formats rows as columns below their names. Columns without a value are left out. */
export function columnsOf(names: readonly string[], rows: readonly (readonly string[])[]): string {
  const used = names.map((_, at) => rows.some((row) => row[at] !== ''));
  const shown = [names, ...rows].map((row) => row.filter((_, at) => used[at]));
  const widths = (shown[0] ?? []).map((_, at) => Math.max(...shown.map((row) => (row[at] ?? '').length)));
  return shown
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** What a stranger wrote, as one line of at most so many characters. */
export function oneLine(text: string, most = 80): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys them
  const line = text.replace(/[\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ').trim();
  return [...line].length > most ? `${[...line].slice(0, most - 1).join('')}…` : line;
}
