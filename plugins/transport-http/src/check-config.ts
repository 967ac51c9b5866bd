import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import type { HttpConfig } from './config.js';
import { isLoopback, parseHost } from './gate/host-name.js';
import { normalOrigin } from './gate/origin.js';

/** Checks what the schema cannot express. */
export function checkConfig({ listen, host, hosts, origins }: HttpConfig, check: CheckContext): readonly ConfigProblem[] {
  const open = check.entries('auth').length === 0;
  const problems: ConfigProblem[] = [];
  if (listen && open && !isLoopback(host) && check.literal('auth') !== 'open')
    problems.push({ path: ['host'], message: openToOthers(host) });
  for (const [at, name] of hosts.entries()) {
    if (!parseHost(name)?.name) problems.push({ path: ['hosts', at], message: invalidHost(name) });
  }
  for (const [at, origin] of origins.entries()) {
    const message = origin === '*' ? open && ANY_ORIGIN : !normalOrigin(origin) && invalidOrigin(origin);
    if (message) problems.push({ path: ['origins', at], message });
  }
  return problems;
}

function openToOthers(host: string): string {
  return (
    `"${host}" accepts connections from other machines, and the server requires no credentials: configure a provider ` +
    'under `auth`, such as `bearer`, or set `auth: open` to allow this'
  );
}

function invalidHost(name: string): string {
  return `"${name}" is not a valid host name; use the form agents.example.org or agents.example.org:8080`;
}

function invalidOrigin(origin: string): string {
  return `"${origin}" is not a valid origin: use a scheme, a host and optionally a port, such as https://app.example.org`;
}

const ANY_ORIGIN =
  '"*" lets any web page run the agents, because the server requires no credentials: list the sites, or configure a provider under `auth`';
