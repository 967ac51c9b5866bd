import { OAuthClientFlowError, OAuthError } from '@modelcontextprotocol/client';
import { AcceptedFileError } from '../errors/errors.js';
import { HttpFailure } from '../http/http-failure.js';

/** Characters of what an authorization server says in an error. */
const MAX_TEXT = 200;

/** No token, so nothing was sent to the MCP server. @param reason is a clause. */
export function notSignedIn(reason: string): HttpFailure {
  return new HttpFailure('no_token', `signing in failed, so nothing was sent: ${reason}`);
}

/** The server refuses the token that the authorization server gave for these scopes. */
export function missingScope(scopes: readonly string[], description: string): HttpFailure {
  const wanted = scopes.length === 0 ? 'more scopes' : `the scope "${scopes.join(' ').slice(0, MAX_TEXT)}"`;
  const said = description === '' ? '' : `; it said: ${description.slice(0, MAX_TEXT)}`;
  const cure = 'allow it for the client at the authorization server';
  return new HttpFailure('no_token', `the server wants ${wanted}, also from a new token: ${cure}${said}`);
}

/** The client's secret was meant for one authorization server, and the MCP server names another. */
export function otherIssuer(named: string, expected: string, isConfigured: boolean): HttpFailure {
  const cure = isConfigured
    ? 'if that is right, change `auth.issuer`'
    : 'if that is right, run plugboard tools accept, or set `auth.issuer`';
  return notSignedIn(
    `the server names the authorization server ${named}, and not ${expected}, so the secret was not sent: ${cure}`,
  );
}

export function noMetadata(issuer: string): HttpFailure {
  return notSignedIn(`the authorization server ${issuer} publishes no metadata: check \`auth.issuer\``);
}

export function otherResource(resource: string): HttpFailure {
  return notSignedIn(`the metadata of the server are those of another one, ${resource}`);
}

export function invalidToken(issuer: string): HttpFailure {
  return notSignedIn(`the authorization server ${issuer} sent a token that is not a bearer token`);
}

/** An address that metadata name. @param reason is a clause. */
export function refusedAddress(url: URL, reason: string): HttpFailure {
  return notSignedIn(`${url.origin} is not contacted: ${reason}`);
}

export function lateAnswer(url: URL, seconds: number): HttpFailure {
  return notSignedIn(`${url.origin} did not answer within ${seconds} s`);
}

/** What the operator can look at, by the code of the authorization server (RFC 6749, 8707). */
const CURES: Readonly<Record<string, string>> = {
  invalid_client: ': check `auth.clientId`, and the secret or key',
  unauthorized_client: ': allow client credentials for this client',
  invalid_scope: ': check `auth.scopes`',
};

/**
 * Says why signing in failed. The answers of the authorization server may hold secrets, so only
 * its codes and descriptions are repeated.
 *
 * @param issuer undefined before it is known.
 */
export function signInFailure(error: unknown, issuer: string | undefined, redact: (text: string) => string): HttpFailure {
  if (error instanceof AcceptedFileError) return notSignedIn(error.message);
  const who = issuer === undefined ? 'the metadata of the server' : `the authorization server ${issuer}`;
  if (error instanceof HttpFailure) {
    if (error.kind === 'no_token') return error;
    if (error.kind === 'broken') return notSignedIn(`the connection to ${who} broke`);
    return notSignedIn(error.kind === 'away' ? error.message : `${who} sent an answer that is too large`);
  }
  if (error instanceof OAuthError) {
    const status = /^HTTP (\d{3}): Invalid OAuth error response/.exec(error.message)?.[1];
    if (status !== undefined) return notSignedIn(`${who} answered HTTP ${status}`);
    const said = error.message === error.code ? '' : `; it said: ${redact(error.message).slice(0, MAX_TEXT)}`;
    return notSignedIn(`${who} refused the client (${redact(error.code).slice(0, MAX_TEXT)})${CURES[error.code] ?? ''}${said}`);
  }
  if (error instanceof OAuthClientFlowError) return notSignedIn(error.message.slice(0, 2 * MAX_TEXT));
  const status = error instanceof Error ? /^HTTP (\d{3}) trying to load/.exec(error.message)?.[1] : undefined;
  return notSignedIn(status === undefined ? `${who} sent an answer that is not valid` : `${who} answered HTTP ${status}`);
}
