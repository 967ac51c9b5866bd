import type { Metadata } from '@plugboard/kernel';
import { badMetadata } from './errors.js';
import { parsed } from './stored-message.js';

/** Metadata as the JSON text that is kept. What could not be read back is refused here. @throws StoreError */
export function encodedMetadata(metadata: Metadata): string {
  const fault = faultOf(metadata);
  if (fault !== undefined) throw badMetadata(fault);
  return JSON.stringify(metadata);
}

/** @param refuse makes the error of what is wrong, half a sentence whose subject is the row. */
export function decodedMetadata(text: string, refuse: (fault: string) => Error): Metadata {
  const metadata = parsed(text, refuse);
  const fault = faultOf(metadata);
  if (fault !== undefined) throw refuse(fault);
  return metadata as Metadata;
}

function faultOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is no object';
  if (Object.hasOwn(value, '__proto__')) return 'holds a __proto__';
  return Object.values(value).every((text) => typeof text === 'string') ? undefined : 'holds what is no text';
}
