import t from 'tap';
import { AddressPolicy } from '../../../src/contracts/callers/address-policy.js';

const policy = new AddressPolicy();

/** The first and the last address of each block of IANA's special-purpose registries. */
const IPV4: Readonly<Record<string, readonly [first: string, last: string]>> = {
  'this network': ['0.0.0.0', '0.255.255.255'],
  'private use, 10/8': ['10.0.0.0', '10.255.255.255'],
  'shared address space of carriers': ['100.64.0.0', '100.127.255.255'],
  loopback: ['127.0.0.0', '127.255.255.255'],
  'link local, with the metadata of clouds': ['169.254.0.0', '169.254.255.255'],
  'private use, 172.16/12': ['172.16.0.0', '172.31.255.255'],
  'protocol assignments, DS-Lite, NAT64 discovery': ['192.0.0.0', '192.0.0.255'],
  'documentation, TEST-NET-1': ['192.0.2.0', '192.0.2.255'],
  'AS112-v4': ['192.31.196.0', '192.31.196.255'],
  AMT: ['192.52.193.0', '192.52.193.255'],
  '6to4 relay anycast': ['192.88.99.0', '192.88.99.255'],
  'private use, 192.168/16': ['192.168.0.0', '192.168.255.255'],
  'direct delegation AS112': ['192.175.48.0', '192.175.48.255'],
  benchmarking: ['198.18.0.0', '198.19.255.255'],
  'documentation, TEST-NET-2': ['198.51.100.0', '198.51.100.255'],
  'documentation, TEST-NET-3': ['203.0.113.0', '203.0.113.255'],
  multicast: ['224.0.0.0', '239.255.255.255'],
  'reserved, and limited broadcast': ['240.0.0.0', '255.255.255.255'],
};
const IPV6: Readonly<Record<string, readonly [first: string, last: string]>> = {
  unspecified: ['::', '::'],
  loopback: ['::1', '::1'],
  'IPv4-compatible': ['::10.0.0.7', '::ffff:ffff'],
  'IPv4-translated': ['::ffff:0:0:0', '::ffff:0:255.255.255.255'],
  'NAT64, well-known prefix': ['64:ff9b::', '64:ff9b::255.255.255.255'],
  'NAT64, local use': ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  'discard only': ['100::', '100::ffff:ffff:ffff:ffff'],
  'dummy prefix': ['100:0:0:1::', '100:0:0:1:ffff:ffff:ffff:ffff'],
  Teredo: ['2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff'],
  'port control protocol, TURN, DNS-SD': ['2001:1::1', '2001:1::3'],
  benchmarking: ['2001:2::', '2001:2:0:ffff:ffff:ffff:ffff:ffff'],
  AMT: ['2001:3::', '2001:3:ffff:ffff:ffff:ffff:ffff:ffff'],
  'AS112-v6': ['2001:4:112::', '2001:4:112:ffff:ffff:ffff:ffff:ffff'],
  'ORCHID and ORCHIDv2': ['2001:10::', '2001:2f:ffff:ffff:ffff:ffff:ffff:ffff'],
  'drone remote ID': ['2001:30::', '2001:3f:ffff:ffff:ffff:ffff:ffff:ffff'],
  documentation: ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  '6to4': ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  'direct delegation AS112': ['2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff'],
  'documentation, RFC 9637': ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  'segment routing': ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  'unique local': ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  'link local': ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  'site local': ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  multicast: ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
};

t.test('S-76 no address of a special-purpose block is public, in any notation', async (t) => {
  for (const [block, addresses] of Object.entries(IPV4)) {
    for (const address of addresses) {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
      const groups = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
      for (const written of [address, `::ffff:${address}`, `::ffff:${groups}`, `0:0:0:0:0:FFFF:${groups}`])
        t.notOk(policy.allows(written), `${block}: ${written}`);
      for (const carrier of [`64:ff9b::${groups}`, `2002:${groups}::1`, `::${groups}`])
        t.notOk(policy.allows(carrier), `${block} carried in ${carrier}`);
    }
  }
  for (const [block, addresses] of Object.entries(IPV6))
    for (const address of addresses) t.notOk(policy.allows(address), `${block}: ${address}`);
  for (const other of ['fe80::1%eth0', 'x', '', '1.2.3', '010.0.0.1', '4000::1', '8000::1'])
    t.notOk(policy.allows(other), `${other}: neither an address nor one that was given out`);
});

t.test('the addresses beside the blocks are public', async (t) => {
  for (const address of [
    ...['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
    ...['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.0.1.0', '192.0.3.0', '192.167.255.255'],
    ...['192.169.0.0', '198.17.255.255', '198.20.0.0', '198.51.99.255', '203.0.114.0', '223.255.255.255'],
    ...['2001:200::', '2001:4860:4860::8888', '2003::1', '2606:2800:220:1::1', '2620:4f:7fff::1', '3ffe::1', '2a00::1'],
    ...['::ffff:93.184.216.34', '::ffff:5db8:d822'],
  ])
    t.ok(policy.allows(address), address);
});
