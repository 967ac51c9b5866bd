import { isIPv6 } from 'node:net';

/** What a Host header says. */
export interface HostName {
  /** In lower case; an IPv6 address without its brackets. Empty where the header is. */
  readonly name: string;
  /** As it was written; empty where there is none. */
  readonly port: string;
}

const FORM = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]*))(?::(\d{0,5}))?$/;

/**
 * Takes a Host header apart, or undefined where it is none. Stricter than a URL's parser, which finds a host in `a@evil.example` (S-23) and undoes
 * percent signs: what is let through here is compared and logged as it stands.
 */
export function parseHost(header: string): HostName | undefined {
  const [, address, name = address, port = ''] = FORM.exec(header.toLowerCase()) ?? [];
  if (name === undefined || Number(port) > 65_535) return undefined;
  return address === undefined || isIPv6(address) ? { name, port } : undefined;
}
