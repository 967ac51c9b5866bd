import type { Configuration } from './read-configuration.js';

/** The place of an entry in the file, `plugboard.yaml:12:3`. Undefined for an object. */
export function entryPlace(id: string, { source, contents }: Configuration): string | undefined {
  const entry = contents.entries.find((one) => one.id === id);
  const position = entry && source.position(entry.path, 'key');
  return position && `${source.shown}:${position.line}:${position.column}`;
}
