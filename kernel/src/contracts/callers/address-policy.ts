import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** IPv4 addresses that are not public: IANA's special-purpose ones (RFC 6890), and multicast. */
const PRIVATE_IPV4 = [
  ['0.0.0.0', 8], // this network (RFC 791)
  ['10.0.0.0', 8], // private use (RFC 1918)
  ['100.64.0.0', 10], // carrier-grade NAT (RFC 6598)
  ['127.0.0.0', 8], // loopback (RFC 1122)
  ['169.254.0.0', 16], // link local (RFC 3927), metadata services of clouds
  ['172.16.0.0', 12], // private use (RFC 1918)
  ['192.0.0.0', 24], // protocol assignments (RFC 6890), DS-Lite, NAT64 discovery
  ['192.0.2.0', 24], // documentation (RFC 5737)
  ['192.31.196.0', 24], // AS112 (RFC 7535)
  ['192.52.193.0', 24], // AMT (RFC 7450)
  ['192.88.99.0', 24], // 6to4 relays, deprecated (RFC 7526)
  ['192.168.0.0', 16], // private use (RFC 1918)
  ['192.175.48.0', 24], // AS112 (RFC 7534)
  ['198.18.0.0', 15], // benchmarking (RFC 2544)
  ['198.51.100.0', 24], // documentation (RFC 5737)
  ['203.0.113.0', 24], // documentation (RFC 5737)
  ['224.0.0.0', 4], // multicast (RFC 5771)
  ['240.0.0.0', 4], // reserved (RFC 1112), broadcast
] as const;

/** The only public IPv6 addresses: IANA has given out no others (RFC 4291, 2000::/3). */
const GLOBAL_IPV6 = ['2000::', 3] as const;

/** What is not public in there: special purposes, and addresses that contain an IPv4 one. */
const PRIVATE_IPV6 = [
  ['2001::', 23], // protocol assignments (RFC 2928): Teredo, benchmarking, ORCHID
  ['2001:db8::', 32], // documentation (RFC 3849)
  ['2002::', 16], // 6to4 (RFC 3056)
  ['2620:4f:8000::', 48], // AS112 (RFC 7534)
  ['3fff::', 20], // documentation (RFC 9637)
] as const;

const PRIVATE = new BlockList();
const GLOBAL = new BlockList();
for (const [address, prefix] of PRIVATE_IPV4) PRIVATE.addSubnet(address, prefix, 'ipv4');
for (const [address, prefix] of PRIVATE_IPV6) PRIVATE.addSubnet(address, prefix, 'ipv6');
GLOBAL.addSubnet(...GLOBAL_IPV6, 'ipv6');
/** IPv4 in the notation of IPv6: the list for IPv4 answers for it. */
const MAPPED = new BlockList();
MAPPED.addSubnet('::ffff:0:0', 96, 'ipv6');

/**
 * Which addresses the server connects to for others: what it fetches for a caller, and what it
 * posts to where an option points (S-07, S-76). Public ones, and those that the operator allows.
 *
 * @experimental
 */
export class AddressPolicy {
  readonly #allowed: (address: string) => boolean;
  readonly #resolve: typeof lookup;

  /**
   * @param allowed whether an address that is not public may be connected to.
   * @param resolve resolves names, by default as the system does.
   */
  constructor(allowed: (address: string) => boolean = () => false, resolve = lookup) {
    this.#allowed = allowed;
    this.#resolve = resolve;
  }

  /** @param address IPv4 or IPv6. Anything else is refused. */
  allows(address: string): boolean {
    return isPublic(address) || (isIP(address) !== 0 && this.#allowed(address));
  }

  /**
   * A lookup that resolves a name to allowed addresses only. The socket connects to what was
   * checked, so that a name cannot change its address in between. It is not asked about a host that
   * is an address: check that with `allows`.
   */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    this.#resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const found = error ? [] : (addresses as LookupAddress[]).filter(({ address }) => this.allows(address));
      const [first] = found;
      if (error || !first) callback(error ?? new Error('its address is private'), '', 0);
      else if (options.all) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}

function isPublic(address: string): boolean {
  const version = isIP(address);
  if (version === 0) return false;
  if (version === 4) return !PRIVATE.check(address, 'ipv4');
  const isUnicast = GLOBAL.check(address, 'ipv6') || MAPPED.check(address, 'ipv6');
  return isUnicast && !PRIVATE.check(address, 'ipv6');
}
