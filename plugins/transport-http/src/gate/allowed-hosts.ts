import { CONFIG, inject, injectable } from '@plugboard/kernel';
import type { HttpConfig } from '../config.js';
import { type HostName, parseHost } from './host-name.js';
import { isLoopback } from './loopback.js';

/**
 * The names that a server without credentials may be called by. A web page can make a browser call this machine under a name of its own
 * (DNS rebinding), and the browser then takes both for the same site; only the name in the Host header gives it away.
 */
@injectable()
export class AllowedHosts {
  readonly #named: ReadonlySet<string>;
  readonly #checks: boolean;

  constructor(@inject(CONFIG) { host, hosts }: HttpConfig) {
    this.#named = new Set(hosts.flatMap((text) => keyOf(parseHost(text)) ?? []));
    this.#checks = isLoopback(host) || hosts.length > 0;
  }

  /** No page can be served from a loopback name but by this machine, so those are allowed always, with any port. */
  allow(host: HostName): boolean {
    return !this.#checks || isLoopback(host.name) || this.#named.has(host.name) || this.#named.has(`${host.name} ${host.port}`);
  }
}

/** A name alone stands for every port. */
function keyOf(host: HostName | undefined): string | undefined {
  return host && (host.port === '' ? host.name : `${host.name} ${host.port}`);
}
