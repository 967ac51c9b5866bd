import type { CommandFamily } from '@plugboard/kernel';
import type { TokenBook } from '../token-book.js';
import { create } from './create.js';
import { hash } from './hash.js';
import { list } from './list.js';
import { revoke } from './revoke.js';
import { rotate } from './rotate.js';

/** `plugboard token …`. */
export function tokenCommand(book: TokenBook): CommandFamily {
  return {
    summary: 'Makes, lists, revokes and rotates API tokens',
    actions: { create: create(book), list: list(book), revoke: revoke(book), rotate: rotate(book), hash },
  };
}
