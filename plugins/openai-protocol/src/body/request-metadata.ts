import { countCharacters, propertyNameTooLong, stringTooLong, tooManyProperties, wrongType } from '../errors/request-errors.js';
import { requireObject } from './request-fields.js';

/** Limits of `metadata`: the number of pairs, and characters of names and values. */
export const METADATA_LIMITS = { pairs: 16, name: 64, value: 512 } as const;

/** Checks the field `metadata`; null counts as empty. @throws ProtocolError 400 */
export function parseMetadata(value: unknown): Readonly<Record<string, string>> {
  if (value == null) return {};
  const pairs = Object.entries(requireObject(value, 'metadata', 'a metadata object'));
  if (pairs.length > METADATA_LIMITS.pairs) throw tooManyProperties('metadata', METADATA_LIMITS.pairs, pairs.length);
  for (const [name, text] of pairs) {
    if (countCharacters(name) > METADATA_LIMITS.name) throw propertyNameTooLong('metadata', name, METADATA_LIMITS.name);
    const param = `metadata.${name}`;
    if (typeof text !== 'string') throw wrongType(param, 'a string', text);
    const length = countCharacters(text);
    if (length > METADATA_LIMITS.value) throw stringTooLong(param, METADATA_LIMITS.value, length);
  }
  return Object.fromEntries(pairs) as Record<string, string>;
}
