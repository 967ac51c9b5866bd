import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import Provider from 'oidc-provider';
import type { Test } from 'tap';

/** What the issuer's tokens are for. */
export const AUDIENCE = 'https://agents.example.com';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A key of an issuer's, made for one run of a test. */
export interface Key {
  readonly id: string;
  readonly algorithm: string;
  readonly private: CryptoKey;
  readonly public: CryptoKey;
  /** With its private part. */
  readonly jwk: JWK;
}

export async function newKey(id: string, algorithm = 'RS256'): Promise<Key> {
  const pair = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(pair.privateKey)), kid: id, alg: algorithm, use: 'sig' };
  return { id, algorithm, private: pair.privateKey, public: pair.publicKey, jwk };
}

/**
 * A real OpenID Connect issuer on its own port: it can be stopped, and put back
 * with other keys.
 */
export class TestIssuer {
  /** The paths that were asked for. */
  readonly asked: string[] = [];
  #url = '';
  #handler: Handler = (request) => void request.socket.destroy();

  static async start(t: Pick<Test, 'teardown'>, key: Key): Promise<TestIssuer> {
    const issuer = new TestIssuer();
    const server = createServer((request, response) => issuer.#serve(request, response));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => {
      server.close();
      server.closeAllConnections();
    });
    issuer.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    issuer.use(key);
    return issuer;
  }

  get url(): string {
    return this.#url;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.asked.push(request.url ?? '');
    this.#handler(request, response);
  }

  /** How often the keys were asked for. */
  get keyCalls(): number {
    return this.asked.filter((path) => path === '/jwks').length;
  }

  /** From now on the issuer has this key, and no other. */
  use(key: Key): void {
    this.#handler = program(this.url, key);
  }

  /** From now on this answers. */
  answer(handler: Handler): void {
    this.#handler = handler;
  }

  /** From now on connections are reset. */
  down(): void {
    this.#handler = (request) => void request.socket.destroy();
  }

  /**
   * A token of the issuer's own making: the client credentials of `client`, for a scope, as a JWT.
   */
  async token({ client = 'reports', scope = 'chat models:read' } = {}): Promise<string> {
    const body = new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE, scope });
    const authorization = `Basic ${Buffer.from(`${client}:${SECRET}`).toString('base64')}`;
    const reply = await fetch(`${this.url}/token`, { method: 'POST', headers: { authorization }, body });
    if (!reply.ok) throw new Error(await reply.text());
    const { access_token: token } = (await reply.json()) as { access_token: string };
    return token;
  }
}

/** Of clients that exist for one run of a test. */
const SECRET = crypto.randomUUID();

function program(url: string, key: Key): Handler {
  const algorithm = key.algorithm as 'RS256'; // or any other that the provider knows
  const client = (id: string) => ({
    client_id: id,
    client_secret: SECRET,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
    id_token_signed_response_alg: algorithm,
  });
  return new Provider(url, {
    clients: [client('reports'), client('stranger')],
    jwks: { keys: [key.jwk] },
    enabledJWA: { idTokenSigningAlgValues: [algorithm] },
    ttl: { ClientCredentials: 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'chat models:read sessions:read sessions:write',
          audience: AUDIENCE,
          accessTokenTTL: 600,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: algorithm } },
        }),
      },
    },
    extraTokenClaims: (_, token) => ({ org_id: token.clientId === 'reports' ? 'org_1' : 'org_9' }),
  }).callback();
}

/**
 * A token with a key of the issuer's, that claims what a test says. What is undefined is left out.
 */
export function signed(key: Key, claims: Readonly<Record<string, unknown>>, header: Readonly<Record<string, unknown>> = {}) {
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: key.algorithm, kid: key.id, typ: 'at+jwt', ...header })
    .sign(key.private);
}
