import { AuthProviders } from '@plugboard/kernel';
import { ManualClock, startServer } from '@plugboard/testing';
import type { Test } from 'tap';
import { AUDIENCE, type Key, newKey, signed, TestIssuer } from './issuer.js';

const FILE = `
transports: { http: { port: 0 }, models: {}, chat-completions: {} }
auth:
  jwt:
    issuer: "\${ISSUER}"
    audience: "\${AUDIENCE}"
    project: { claim: org_id, map: { org_1: acme, org_2: umbrella, org_3: default } }
models: { demo: {} }
agents:
  helper: { model: demo, project: acme }
  butler: { model: demo, project: umbrella }
  porter: { model: demo }
projects: { acme: {}, umbrella: {} }
`;

const { signal: NEVER } = new AbortController();

interface Options {
  readonly yaml?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly key?: Key;
  /** An issuer that is there already. */
  readonly issuer?: TestIssuer;
}

/** What the tests look at of an answer: a list, a completion or an error. */
interface Body {
  readonly data?: readonly { readonly id: string }[];
  readonly choices?: readonly unknown[];
  readonly error?: { readonly code?: string; readonly message: string };
}

/** An answer of the server's, and what is in it. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/**
 * A whole server that takes an issuer's tokens, and the issuer. Its clock stands at the time of the
 * test's start.
 */
export async function world(t: Test, options: Options = {}) {
  const key = options.key ?? (await newKey('one'));
  const issuer = options.issuer ?? (await TestIssuer.start(t, key));
  const clock = new ManualClock(Date.now());
  const sent = new Set<string>();
  const env = { ISSUER: issuer.url, AUDIENCE };
  const server = await startServer(options.yaml ?? FILE, { env, clock, files: options.files ?? {} });
  t.teardown(() => server.stop());
  const ask = async (path: string, token: string, body?: object): Promise<Reply> => {
    sent.add(token);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const reply = await fetch(server.url + path, body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers });
    return { status: reply.status, headers: reply.headers, body: (await reply.json()) as Body };
  };
  return {
    key,
    issuer,
    clock,
    server,
    /** What a token of the issuer's says, unless a test says otherwise. */
    claims: () => claimsOf(issuer, clock.now()),
    /** A token with the issuer's key: what a test says of its claims and header wins. */
    signed: (claims: object = {}, header: object = {}, by = key) =>
      signed(by, { ...claimsOf(issuer, clock.now()), ...claims }, { ...header }),
    models: (token: string) => ask('/v1/models', token),
    chat: (token: string, model: string) =>
      ask('/v1/chat/completions', token, { model, messages: [{ role: 'user', content: 'Hi' }] }),
    /**
     * Why a token is refused; undefined where it is not, and `not mine` where the provider leaves
     * it to others.
     */
    reason: async (token: string, provider = 'jwt') => {
      const answer = await server.server
        .extensions(AuthProviders)
        .get(provider)
        ?.authenticate({ bearer: token, headers: {} }, NEVER);
      if (answer === undefined) return 'not mine';
      return 'refused' in answer ? answer.refused : undefined;
    },
    /** The sent values that occur in the log: there should be none. */
    leaked: () => {
      const log = JSON.stringify(server.logs);
      return [...sent].flatMap((token) => token.split('.')).filter((part) => part.length > 3 && log.includes(part));
    },
  };
}

function claimsOf(issuer: TestIssuer, now: number) {
  const seconds = Math.floor(now / 1000);
  return { iss: issuer.url, aud: AUDIENCE, sub: 'reports', org_id: 'org_1', iat: seconds, exp: seconds + 600 };
}

/** The names in a list of models. */
export function names({ body }: Reply): string[] {
  return (body.data ?? []).map(({ id }: { id: string }) => id);
}
