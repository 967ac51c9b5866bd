import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SCOPES, type Scope } from '@plugboard/kernel/contracts';
import type { StartServerOptions } from '@plugboard/testing';
import type { Access } from '@plugboard/transport-http';
import type { Test } from 'tap';
import { TestServer } from '../../support/test-server.js';

const DISTRIBUTION = readFileSync(join(import.meta.dirname, '../../../plugboard.yaml'), 'utf8');

/**
 * The transports of the distribution at the root, on a free port: one that is added there is
 * attacked here from then on.
 */
export const [TRANSPORTS = ''] = /^transports:\n(?: .*\n)+/m.exec(DISTRIBUTION) ?? [];

/** A token of the project `default` with this scope only. */
export function tokenFor(scope: Scope): string {
  return `token-for-${scope.replace(':', '-')}-alone`;
}

/** A token of the project `default` that may do all that callers usually may. */
export const TOKEN = 'token-for-everything-usual';

/** A token that may call a route, and one that may not, if any scope is needed. */
export function tokensOf(access: Access): { readonly strong: string; readonly weak: string } {
  const usual = { strong: TOKEN, weak: tokenFor('admin') };
  return typeof access === 'object' && 'orOpen' in access ? { strong: usual.weak, weak: usual.strong } : usual;
}

const TOKENS = [
  `{ name: usual, project: default, token: ${TOKEN} }`,
  ...SCOPES.map((scope) => `{ name: "${scope}", project: default, scopes: ["${scope}"], token: ${tokenFor(scope)} }`),
];

/** Who may call. */
const BEARER = `auth: { bearer: { tokens: [ ${TOKENS.join(', ')} ] } }\n`;

/** Where sessions are kept: a file in its own folder. */
export const STORE = 'sessions: { use: sqlite, path: ./data/sessions.db }\n';

const AGENTS = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
tools:
  clock: {}
agents:
  assistant: { model: fast, system: You are the assistant., tools: [clock] }
defaultAgent: assistant
`;

/**
 * A server with all routes of the distribution, which asks for tokens and keeps sessions in a file.
 */
export function startWithAllRoutes(
  t: Test,
  { auth = BEARER, more = AGENTS, env, ...options }: StartServerOptions & { readonly auth?: string; readonly more?: string } = {},
): Promise<TestServer> {
  return TestServer.start(t, TRANSPORTS + STORE + auth + more, { env: { PORT: '0', ...env }, ...options });
}
