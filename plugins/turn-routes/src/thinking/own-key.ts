import { randomBytes } from 'node:crypto';
import type { PluginState } from '@plugboard/kernel';

/** Bytes. */
const KEY_LENGTH = 32;

/**
 * The secret key that an entry keeps with its state. Who needs it first makes it: of several
 * servers that start together one does, and the others read its key.
 */
export async function ownKey(state: PluginState, name: string): Promise<Uint8Array> {
  let stored = await state.get(name);
  if (stored === undefined) {
    const made = randomBytes(KEY_LENGTH).toString('base64');
    stored = (await state.compareAndSet(name, undefined, made)) ? made : await state.get(name);
  }
  const key = Buffer.from(String(stored), 'base64');
  if (key.length !== KEY_LENGTH) throw new Error(`the session store did not keep the key ${name}`);
  return key;
}
