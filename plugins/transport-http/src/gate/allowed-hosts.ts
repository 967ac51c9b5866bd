import type { PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { HttpConfig } from '../config.js';
import { type HostName, isLoopback, parseHost } from './host-name.js';

/**
 * The host names that an open server accepts. With DNS rebinding, a web page makes a browser call
 * this machine under the page's own name, so that the browser treats both as one site. Only the
 * Host header reveals it (S-09).
 */
export class AllowedHosts {
  #named: ReadonlySet<string> = new Set();
  #checks = true;

  constructor(@inject(CONTEXT) { config }: PluginContext<HttpConfig>) {
    this.configure(config);
  }

  configure({ listen, host, hosts }: HttpConfig): void {
    this.#named = new Set(hosts.flatMap((text) => keyOf(parseHost(text)) ?? []));
    this.#checks = !listen || isLoopback(host) || hosts.length > 0;
  }

  /** Loopback names are always allowed: only this machine can serve pages from them. */
  allow(host: HostName): boolean {
    return !this.#checks || isLoopback(host.name) || this.#named.has(host.name) || this.#named.has(`${host.name} ${host.port}`);
  }
}

/** A name without a port allows every port. */
function keyOf(host: HostName | undefined): string | undefined {
  return host && (host.port === '' ? host.name : `${host.name} ${host.port}`);
}
