import { createHash, timingSafeEqual } from 'node:crypto';
import type { AuthProvider, AuthResult, Credentials, Principal } from '@plugboard/kernel';
import { DEFAULT_SCOPES } from '@plugboard/kernel/contracts';
import type { StarterConfig } from './config.ts';

/** Marks the tokens of this provider. Others are left to the next provider of the file. */
const PREFIX = 'key-';

/** Identifies callers by API key. */
export class StarterAuth implements AuthProvider {
  readonly #keys: readonly { readonly digest: Buffer; readonly principal: Principal }[];

  constructor({ keys }: StarterConfig) {
    this.#keys = keys.map(({ name, project, key }) => ({
      digest: digestOf(key),
      principal: { project, token: name, tokenId: `key_${digestOf(key).toString('hex').slice(0, 12)}`, scopes: DEFAULT_SCOPES },
    }));
  }

  authenticate({ bearer }: Credentials): AuthResult | undefined {
    if (!bearer?.startsWith(PREFIX)) return undefined;
    const digest = digestOf(bearer);
    const found = this.#keys.find((key) => timingSafeEqual(key.digest, digest));
    return found ? { principal: found.principal } : { refused: 'an unknown API key' };
  }
}

/** Digests have the same length, so comparing them takes the same time for every key. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
