import { BlockList, isIP } from 'node:net';
import { isPublic } from '@plugboard/kernel/contracts';

/** Which addresses replies may be posted to (S-07): public ones, and those that the file allows. */
export class ReplyAddresses {
  readonly #allowed = new BlockList();
  /** What is neither an address nor a block. */
  readonly invalid: readonly string[];

  constructor(allowPrivate: readonly string[] = []) {
    this.invalid = allowPrivate.filter((text) => !this.#add(text));
  }

  /** @param address IPv4 or IPv6. */
  has(address: string): boolean {
    return isPublic(address) || (isIP(address) !== 0 && this.#allowed.check(address, familyOf(address)));
  }

  #add(text: string): boolean {
    const [address = '', prefix, ...more] = text.split('/');
    const family = familyOf(address);
    const bits = prefix === undefined ? undefined : Number(prefix);
    if (isIP(address) === 0 || more.length > 0) return false;
    if (bits === undefined) this.#allowed.addAddress(address, family);
    else if (/^\d{1,3}$/.test(prefix ?? '') && bits <= (family === 'ipv4' ? 32 : 128))
      this.#allowed.addSubnet(address, bits, family);
    else return false;
    return true;
  }
}

/** The host of a URL, without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
