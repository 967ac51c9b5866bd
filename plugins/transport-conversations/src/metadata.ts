import type { Metadata } from '@plugboard/kernel';
import { objectAt } from './checks.js';
import { nameTooLong, stringTooLong, tooManyProperties, wrongType } from './faults.js';

const MAX_PAIRS = 16;
const MAX_NAME = 64;
const MAX_VALUE = 512;

/** What a caller attaches to a conversation; nothing where it is null. Lengths are in characters. @throws HttpError 400 */
export function metadataOf(value: unknown): Metadata {
  if (value == null) return {};
  const pairs = Object.entries(objectAt(value, 'metadata', 'a metadata object'));
  if (pairs.length > MAX_PAIRS) throw tooManyProperties('metadata', MAX_PAIRS, pairs.length);
  for (const [name, text] of pairs) {
    if (lengthOf(name) > MAX_NAME) throw nameTooLong('metadata', name, MAX_NAME, lengthOf(name));
    const param = `metadata.${name}`;
    if (typeof text !== 'string') throw wrongType(param, 'a string', text);
    if (lengthOf(text) > MAX_VALUE) throw stringTooLong(param, MAX_VALUE, lengthOf(text));
  }
  return Object.fromEntries(pairs) as Metadata;
}

function lengthOf(text: string): number {
  return [...text].length;
}
