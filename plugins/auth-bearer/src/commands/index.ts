import type { CommandFamily } from '@plugboard/kernel/contracts';
import type { TokenRegistry } from '../registry/token-registry.js';
import { create } from './create.js';
import { hash } from './hash.js';
import { list } from './list.js';
import { revoke } from './revoke.js';
import { rotate } from './rotate.js';

/** `plugboard token …`. */
export function tokenCommand(registry: TokenRegistry): CommandFamily {
  return {
    summary: 'Creates, lists, rotates and revokes API tokens',
    actions: { create: create(registry), list: list(registry), revoke: revoke(registry), rotate: rotate(registry), hash },
  };
}
