import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import type { HttpConfig } from './config.js';
import { parseHost } from './gate/host-name.js';
import { isLoopback } from './gate/loopback.js';
import { normalOrigin } from './gate/origin.js';

/** What the schema cannot say of the options. */
export function checkConfig({ host, hosts, origins }: HttpConfig, check: CheckContext): readonly ConfigProblem[] {
  const open = check.entries('auth').length === 0;
  const problems: ConfigProblem[] = [];
  if (open && !isLoopback(host) && check.literal('auth') !== 'open') problems.push({ path: ['host'], message: unmeant(host) });
  for (const [at, name] of hosts.entries()) {
    if (!parseHost(name)?.name) problems.push({ path: ['hosts', at], message: noHost(name) });
  }
  for (const [at, origin] of origins.entries()) {
    const message = origin === '*' ? open && EVERY_SITE : !normalOrigin(origin) && noOrigin(origin);
    if (message) problems.push({ path: ['origins', at], message });
  }
  return problems;
}

function unmeant(host: string): string {
  return (
    `"${host}" lets other machines in while nobody is asked for a credential: configure a provider under ` +
    '`auth`, such as `bearer`, or write `auth: open` to say that this is meant'
  );
}

function noHost(name: string): string {
  return `"${name}" is no name of a host, such as agents.example.org or agents.example.org:8080`;
}

function noOrigin(origin: string): string {
  return `"${origin}" is no origin: a scheme and a host, perhaps a port, and nothing behind them, such as https://app.example.org`;
}

const EVERY_SITE =
  '"*" would let every page that a browser has open run the agents, since nobody is asked for a credential: list the sites, or configure a provider under `auth`';
