import { isIPv6 } from 'node:net';

/** A parsed Host header. */
export interface HostName {
  /** Lower case; an IPv6 address without brackets. Empty if the header is empty. */
  readonly name: string;
  /** As written; empty if absent. */
  readonly port: string;
}

const FORM = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]*))(?::(\d{0,5}))?$/;

/**
 * Parses a Host header; returns undefined if it is malformed. Stricter than a URL parser, which
 * accepts `a@evil.example` (S-23) and decodes percent signs.
 */
export function parseHost(header: string): HostName | undefined {
  const [, address, name = address, port = ''] = FORM.exec(header.toLowerCase()) ?? [];
  if (name === undefined || Number(port) > 65_535) return undefined;
  return address === undefined || isIPv6(address) ? { name, port } : undefined;
}

/** Whether an address is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
