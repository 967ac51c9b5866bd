import type { Metadata } from '@plugboard/kernel/contracts';
import { Unstorable } from './bad-row.js';
import { parseRow, type RowError } from './message-json.js';

/** Encodes metadata as JSON. Refuses what could not be read back. @throws Unstorable */
export function encodeMetadata(metadata: Metadata): string {
  const problem = problemOf(metadata);
  if (problem !== undefined) {
    throw new Unstorable('bad_metadata', `the metadata ${problem}, so it could not be read back: nothing was changed`);
  }
  return JSON.stringify(metadata);
}

export function decodeMetadata(text: string, rowError: RowError): Metadata {
  const metadata = parseRow(text, rowError);
  const problem = problemOf(metadata);
  if (problem !== undefined) throw rowError(problem);
  return metadata as Metadata;
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is not an object';
  if (Object.hasOwn(value, '__proto__')) return 'has a key __proto__';
  return Object.values(value).every((text) => typeof text === 'string') ? undefined : 'has a value that is not a string';
}
