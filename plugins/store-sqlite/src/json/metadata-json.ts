import type { Metadata } from '@plugboard/kernel/contracts';
import { badMetadata } from '../errors/store-error.js';
import { parseRow, type RowError } from './message-json.js';

/** Encodes metadata as JSON. Refuses what could not be read back. @throws StoreError */
export function encodeMetadata(metadata: Metadata): string {
  const problem = problemOf(metadata);
  if (problem !== undefined) throw badMetadata(problem);
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
