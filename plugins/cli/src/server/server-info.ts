import { AuthProviders, ModelConnectors, SessionStores, Transports } from '@plugboard/kernel';
import { Channels } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import { type LinkInfo, linksOf } from './descriptions.js';

/** A summary of a server, by the names in its file. */
export interface ServerInfo {
  /** The addresses of the transports that already listen. */
  readonly addresses: readonly string[];
  /** Whether a transport listens, or will listen once the server has started. */
  readonly listens: boolean;
  /** The transports that fetch their messages, or that operators see as channels. */
  readonly channels: readonly string[];
  readonly agents: readonly string[];
  readonly models: readonly string[];
  /** The plugin that stores sessions, for example `memory`. */
  readonly sessions: string;
  /** The auth providers; empty if the server is open. */
  readonly auth: readonly string[];
  /** Pages and other addresses for people. */
  readonly links: readonly LinkInfo[];
  /** The disabled entries, and why. */
  readonly disabled: readonly { readonly entry: string; readonly reason: string }[];
}

export function serverInfo(server: HostServer): ServerInfo {
  const store = server.extensions(SessionStores).all()[0]?.entry;
  const transports = server.extensions(Transports).all();
  return {
    addresses: transports.map(({ value }) => value.address()).filter((address) => address !== undefined),
    listens: transports.length > 0,
    channels: server.inspection.plugins
      .filter(({ entry, provides }) => entry.startsWith('transports.') && isChannel(provides.map(({ point }) => point)))
      .map(({ entry }) => entry.slice('transports.'.length)),
    agents: server.inspection.keys('agents'),
    models: names(server.extensions(ModelConnectors)),
    sessions: shortName(server.inspection.plugins.find(({ entry }) => entry === store)?.name ?? 'none'),
    auth: names(server.extensions(AuthProviders)),
    links: linksOf(server),
    disabled: server.host
      .entries()
      .flatMap(({ entry, status, reason = '' }) => (status === 'disabled' ? [{ entry, reason }] : [])),
  };
}

/** Whether an entry under `transports` that contributes to these points is a channel. */
function isChannel(points: readonly string[]): boolean {
  return points.length === 0 || points.includes(Channels.id);
}

/** What a restart loses of channels whose state is in memory; undefined if nothing. */
export function channelsInMemory({ channels, sessions }: ServerInfo): string | undefined {
  if (channels.length === 0 || sessions !== 'memory') return undefined;
  const kept = 'messages that wait, replies, and who is paired';
  return `${channels.join(', ')}: ${kept}, are in memory and end with the process; set sessions: { use: sqlite, path: ./sessions.db }`;
}

/** How callers reach the server, for people. */
export function accessOf({ auth, listens }: ServerInfo): string {
  if (auth.length > 0) return `with a credential (${auth.join(', ')})`;
  return listens ? 'open' : 'none: no entry listens for callers';
}

function names(contributions: Iterable<{ readonly name: string }>): string[] {
  return [...new Set(Array.from(contributions, ({ name }) => name))];
}

/** `@plugboard/store-memory` is called `memory` in the file. */
function shortName(plugin: string): string {
  return plugin.replace(/^@plugboard\/store-/, '');
}
