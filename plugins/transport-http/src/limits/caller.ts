import { isIPv6 } from 'node:net';
import type { Principal } from '@plugboard/kernel';
import { DEFAULT_PROJECT } from '@plugboard/kernel/contracts';

/** The principal of requests to public routes. It has no scopes. */
export const ANONYMOUS: Principal = Object.freeze({ project: DEFAULT_PROJECT, scopes: Object.freeze([]) });

/** An address as limits count it: of IPv6 the first 64 bits, as a machine has all the others. */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return '';
  if (!address.includes(':')) return address; // IPv4
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped?.[1]) return mapped[1];
  return isIPv6(address) ? firstGroups(address) : address;
}

function firstGroups(address: string): string {
  const [before = '', after] = (address.split('%')[0] ?? '').split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const groups = after === undefined ? head : [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
