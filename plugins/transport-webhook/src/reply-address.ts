import { BlockList, isIP } from 'node:net';
import { AddressPolicy } from '@plugboard/kernel/contracts';

/** Which addresses replies may be posted to: public ones, and those of `allowPrivate`. */
export class ReplyAddresses extends AddressPolicy {
  /** What of the option is neither an address nor a block. */
  readonly invalid: readonly string[];

  constructor(allowPrivate: readonly string[] = []) {
    const allowed = new BlockList();
    super((address) => allowed.check(address, familyOf(address)));
    this.invalid = allowPrivate.filter((text) => !addTo(allowed, text));
  }
}

/** The host of a URL, without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** Adds `10.0.0.7` or `10.0.0.0/8`. @returns false if it is neither. */
function addTo(list: BlockList, text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/');
  const family = familyOf(address);
  if (isIP(address) === 0 || more.length > 0) return false;
  if (prefix === undefined) list.addAddress(address, family);
  else if (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 'ipv4' ? 32 : 128))
    list.addSubnet(address, Number(prefix), family);
  else return false;
  return true;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
