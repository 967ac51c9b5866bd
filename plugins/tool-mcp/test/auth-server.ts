import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import type { McpServer } from './http-server.js';

export const SECRET = 'the-secret-of-the-client';
const METADATA = '/.well-known/oauth-authorization-server';

/** A request for a token, as the authorization server received it. */
export interface TokenRequest {
  readonly headers: IncomingHttpHeaders;
  readonly form: Readonly<Record<string, string>>;
}

/**
 * A real authorization server: it publishes metadata, and gives tokens to one client. It refuses
 * wrong secrets, and records what it received.
 */
export async function authServer(t: Pick<Test, 'teardown'>) {
  const requests: TokenRequest[] = [];
  const asked: string[] = [];
  let count = 0;
  let running = 0;
  const server = createServer(async (request, response) => {
    const { url = '', headers } = request;
    asked.push(url);
    if (scripted.intercept(url, response)) return;
    if (url === METADATA) return json(response, 200, { ...scripted.metadata() });
    if (url !== '/token') return void response.writeHead(404).end();
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(pieces).toString()));
    requests.push({ headers, form });
    running += 1;
    scripted.mostRunning = Math.max(scripted.mostRunning, running);
    await scripted.before();
    running -= 1;
    const basic = `Basic ${Buffer.from(`client:${scripted.secret}`).toString('base64')}`;
    if (headers.authorization !== basic && form.client_assertion === undefined) {
      const description = `${SECRET} is not right, nor is ${headers.authorization}`;
      return json(response, 401, { error: 'invalid_client', error_description: description });
    }
    count += 1;
    const token = `token-${count}-of-${new URL(scripted.url).port}`;
    scripted.tokens.set(token, scripted.grants((form.scope ?? '').split(' ')));
    json(response, 200, { access_token: token, token_type: 'Bearer', ...scripted.extra });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const scripted = {
    url,
    /** Requests for tokens, and the paths of all requests. */
    requests,
    asked,
    secret: SECRET,
    /** Tokens that are valid, with their scopes. */
    tokens: new Map<string, readonly string[]>(),
    /** The scopes that a token gets. */
    grants: (asked: readonly string[]) => asked,
    /** Fields of an answer, beside the token. */
    extra: {} as object,
    metadata: (): object => ({
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      response_types_supported: ['code'],
    }),
    /** Looks at each request first. Returns whether it was answered. */
    intercept: (_path: string, _response: ServerResponse): boolean => false,
    /** Called before a token request is answered. */
    before: async (): Promise<void> => {},
    /** Token requests that were open at once. */
    mostRunning: 0,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  t.teardown(() => server.listening && scripted.close());
  return scripted;
}

export type AuthServer = Awaited<ReturnType<typeof authServer>>;

interface Protection {
  /** The authorization servers that the metadata name. */
  named: readonly string[];
  /** The scope of a 401. */
  scope: string | undefined;
  /** Scopes that calls of a tool need. */
  needs: readonly string[];
  /** Whether 401 says where the metadata are. */
  isPointed: boolean;
  /** The metadata, beside the authorization servers; undefined if there are none. */
  metadata: object | undefined;
}

/** Lets an MCP server accept only tokens of an authorization server. */
export function protect(server: McpServer, auth: () => AuthServer, options: Partial<Protection> = {}): Protection {
  const protection: Protection = {
    named: [auth().url],
    scope: undefined,
    needs: [],
    isPointed: true,
    metadata: { scopes_supported: ['tools'] },
    ...options,
  };
  const at = (origin: string) => `${origin}/.well-known/oauth-protected-resource`;
  server.intercept = ({ method, headers }, response) => {
    const { url = '' } = response.req;
    if (url.startsWith('/.well-known/')) {
      if (!protection.metadata || !(protection.isPointed ? url.endsWith('/mcp') : /resource$/.test(url)))
        response.writeHead(404).end();
      else json(response, 200, { resource: server.url, authorization_servers: protection.named, ...protection.metadata });
      return true;
    }
    const token = /^Bearer (.*)$/.exec(String(headers.authorization))?.[1] ?? '';
    const scopes = auth().tokens.get(token);
    const pointer = protection.isPointed ? `, resource_metadata="${at(new URL(server.url).origin)}/mcp"` : '';
    const scope = protection.scope === undefined ? '' : `, scope="${protection.scope}"`;
    if (!scopes) {
      response.setHeader('www-authenticate', `Bearer realm="mcp"${pointer}${scope}`);
      response.writeHead(401).end(`no token: ${token}`);
      return true;
    }
    const missing = protection.needs.filter((needed) => !scopes.includes(needed));
    if (method !== 'tools/call' || missing.length === 0) return false;
    const challenge = `Bearer error="insufficient_scope", scope="${missing.join(' ')}", error_description="ask for more"`;
    response.setHeader('www-authenticate', challenge);
    response.writeHead(403).end();
    return true;
  };
  return protection;
}

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
