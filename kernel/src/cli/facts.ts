import { AuthProviders } from '../contracts/auth-provider.js';
import { ModelConnectors } from '../contracts/model-connector.js';
import { SessionStores } from '../contracts/session-store.js';
import { Transports } from '../contracts/transport.js';
import type { Composition } from '../host/composition.js';
import { type LinkInfo, linksOf } from './descriptions.js';

/** What a person wants to know of a server, by the names in its file. */
export interface ServerFacts {
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
  readonly withdrawn: readonly { readonly entry: string; readonly reason: string }[];
}

export function factsOf(composition: Composition): ServerFacts {
  const store = composition.extensions(SessionStores).all()[0]?.entry;
  return {
    addresses: composition
      .extensions(Transports)
      .all()
      .map(({ value }) => value.address())
      .filter((address) => address !== undefined),
    agents: composition.keys('agents'),
    models: names(composition.extensions(ModelConnectors)),
    sessions: shortName(composition.plugins.find(({ entry }) => entry === store)?.name ?? 'none'),
    auth: names(composition.extensions(AuthProviders)),
    links: linksOf(composition),
    withdrawn: composition.host
      .entries()
      .flatMap(({ entry, status, reason = '' }) => (status === 'withdrawn' ? [{ entry, reason }] : [])),
  };
}

function names(contributions: Iterable<{ readonly name: string }>): string[] {
  return [...new Set(Array.from(contributions, ({ name }) => name))];
}

/** `@plugboard/store-memory` is `memory` to whoever wrote the file. */
function shortName(plugin: string): string {
  return plugin.replace(/^@plugboard\/store-/, '');
}
