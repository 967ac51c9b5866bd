import type { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { AddressPolicy } from './address-policy.js';

/** The hosts that the configuration file names. */
export interface HostPolicyOptions {
  /** Addresses that the file names: their host may be private, at their port. */
  readonly named: readonly URL[];
  /** Hosts that may be private, as `host`, which means any port, or `host:port`. */
  readonly allowPrivate: readonly string[];
  /** Resolves names, by default as the system does. */
  readonly resolve?: typeof lookup;
}

/**
 * Which hosts may have private addresses: those that the configuration file names (S-07). What a
 * document, a redirect or another server names must be public.
 *
 * @experimental
 */
export class HostPolicy {
  readonly #hosts = new Set<string>();
  readonly #public: AddressPolicy;
  readonly #any: AddressPolicy;

  constructor({ named, allowPrivate, resolve }: HostPolicyOptions) {
    for (const url of named) this.#hosts.add(`${HostPolicy.hostOf(url)}:${portOf(url)}`);
    for (const host of allowPrivate) this.#hosts.add(normal(host) ?? host);
    this.#public = new AddressPolicy(undefined, resolve);
    this.#any = new AddressPolicy(() => true, resolve);
  }

  /** The host of a URL, without the brackets of IPv6. */
  static hostOf(url: URL): string {
    return url.hostname.replace(/^\[|\]$/g, '');
  }

  /** Whether a text is `host` or `host:port`. */
  static isHost(text: string): boolean {
    return normal(text) !== undefined;
  }

  /** The addresses that a request to this URL may connect to. */
  policyFor(url: URL): AddressPolicy {
    const host = HostPolicy.hostOf(url);
    return this.#hosts.has(host) || this.#hosts.has(`${host}:${portOf(url)}`) ? this.#any : this.#public;
  }

  /** Whether the host is surely refused, without asking for its address. */
  refuses(url: URL): boolean {
    const host = HostPolicy.hostOf(url);
    const address = host === 'localhost' || host.endsWith('.localhost') ? '127.0.0.1' : host;
    return isIP(address) !== 0 && !this.policyFor(url).allows(address);
  }
}

function portOf({ port, protocol }: URL): string {
  return port !== '' ? port : protocol === 'https:' ? '443' : '80';
}

/** As a URL writes it: `2130706433` is `127.0.0.1`. */
function normal(text: string): string | undefined {
  if (isIP(text) === 6) return URL.parse(`ws://[${text}]`)?.hostname.slice(1, -1);
  if (/[/?#@\\]/.test(text)) return undefined;
  const url = URL.parse(`ws://${text}`);
  if (!url) return undefined;
  const port = /:(\d{1,5})$/.exec(text)?.[1]; // a URL hides the usual port
  const host = HostPolicy.hostOf(url);
  return text.endsWith(']') || port === undefined ? host : `${host}:${Number(port)}`;
}
