import { AuthProviders } from '../contracts/auth-provider.js';
import { ModelConnectors } from '../contracts/model-connector.js';
import { SessionStores } from '../contracts/session-store.js';
import { Transports } from '../contracts/transport.js';
import type { Server } from '../host/server.js';
import { type LinkInfo, linksOf } from './descriptions.js';

/** What a person wants to know of a server, by the names in its file. */
export interface ServerInfo {
  /** Of the transports that listen already. */
  readonly addresses: readonly string[];
  readonly agents: readonly string[];
  readonly models: readonly string[];
  /** The plugin that keeps sessions, for example `memory`. */
  readonly sessions: string;
  /** The providers of the credentials that are asked for; none where the server is open. */
  readonly auth: readonly string[];
  /** Pages and other addresses for people. */
  readonly links: readonly LinkInfo[];
  /** Entries that do not take part, and why. */
  readonly disabled: readonly { readonly entry: string; readonly reason: string }[];
}

export function serverInfo(server: Server): ServerInfo {
  const store = server.extensions(SessionStores).all()[0]?.entry;
  return {
    addresses: server
      .extensions(Transports)
      .all()
      .map(({ value }) => value.address())
      .filter((address) => address !== undefined),
    agents: server.keys('agents'),
    models: names(server.extensions(ModelConnectors)),
    sessions: shortName(server.plugins.find(({ entry }) => entry === store)?.name ?? 'none'),
    auth: names(server.extensions(AuthProviders)),
    links: linksOf(server),
    disabled: server.host
      .entries()
      .flatMap(({ entry, status, reason = '' }) => (status === 'disabled' ? [{ entry, reason }] : [])),
  };
}

function names(contributions: Iterable<{ readonly name: string }>): string[] {
  return [...new Set(Array.from(contributions, ({ name }) => name))];
}

/** `@plugboard/store-memory` is `memory` to whoever wrote the file. */
function shortName(plugin: string): string {
  return plugin.replace(/^@plugboard\/store-/, '');
}
