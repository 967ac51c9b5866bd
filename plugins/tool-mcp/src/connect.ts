import type { PluginContext } from '@plugboard/kernel';
import { Account } from '@plugboard/kernel/contracts';
import { SignIn, type TrustedIssuer } from './auth/sign-in.js';
import type { McpConfig } from './config.js';
import type { Fetch } from './http/fetch.js';
import { HttpConnection } from './http/http-connection.js';
import { KnownRevision } from './http/known-revision.js';
import { redactorOf } from './http/secrets.js';
import { ChildProcessTransport } from './process/child-process-transport.js';
import { launchOf } from './process/launch.js';
import { ProcessConnection } from './process/process-connection.js';
import type { ConnectionEvents, McpConnection } from './protocol/mcp-connection.js';

/**
 * Creates a connection to a server, for the start and for each restart.
 * @param stopping aborted when the entry stops: ends what is left of earlier connections.
 */
export type Connect = (events: ConnectionEvents, stopping: AbortSignal) => McpConnection;

type Context = Pick<PluginContext<McpConfig>, 'config' | 'entry' | 'resolvePath' | 'clock' | 'log' | 'ids' | 'budgets'>;

/** Reaches the server of a URL. @param trusted the authorization server that a secret may go to. */
export function connectOverHttp(
  { config, entry, clock, ids, budgets }: Context,
  address: string,
  trusted: TrustedIssuer,
): Connect {
  const url = new URL(address);
  const { headers = {}, auth, allowPrivate = [] } = config;
  const newAccount = () => new Account(budgets.memory, undefined, entry);
  const redact = redactorOf(url, config);
  const signIn = auth && new SignIn({ url, auth, allowPrivate, trusted, clock, newAccount, redact });
  const options = {
    url,
    headers,
    revision: new KnownRevision(clock),
    entry,
    clock,
    ids,
    newAccount,
    redact: (text: string) => signIn?.redact(text) ?? redact(text),
    authorize: signIn && ((fetch: Fetch, stopping: AbortSignal) => signIn.authorize(fetch, stopping)),
  };
  return (events, stopping) => new HttpConnection({ ...options, stopping }, events);
}

/** Runs the server of a command. */
export function connectToProcess({ config, entry, resolvePath, clock, log, budgets }: Context): Connect {
  const launch = launchOf(config.command ?? '', config, resolvePath);
  return (events) =>
    new ProcessConnection(new ChildProcessTransport(launch, clock, log, new Account(budgets.memory, undefined, entry)), events);
}
