import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { AUDIENCE, newKey, signed, TestIssuer } from '../../../plugins/auth-jwt/test/support/issuer.js';
import { TestServer } from '../../support/test-server.js';
import { STORE, TRANSPORTS } from './all-routes.js';
import { tokenCommand } from './token-command.js';

/**
 * Secrets of the configuration, by the variables that bring them. None has the form of a known kind
 * of key, by which a log could tell it.
 */
export const VARIABLES = {
  OPS_TOKEN: 'canary-token-of-the-operators',
  OLD_TOKEN: 'canary-token-that-has-expired',
  MODEL_KEY: 'canary-key-of-the-model-server',
  DESK_PASSWORD: 'canary/password "of" the+desk%20',
  GUARD_SECRET: 'canary-secret-that-is-not-marked',
} as const;

/**
 * Every variable is used where real files use it: marked as a secret by the plugin's
 * schema, or as a part of something plain.
 */
const YAML = `
log: { level: trace }
${TRANSPORTS}${STORE}
auth:
  bearer:
    tokens:
      - { name: ops, project: default, token: "\${OPS_TOKEN}" }
      - { name: old, project: default, token: "\${OLD_TOKEN}", expires: 2020-01-01 }
  jwt: { issuer: "\${ISSUER}", audience: "${AUDIENCE}", project: { claim: org, map: { one: default } } }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}", headers: { x-key: "\${MODEL_KEY}" } }
tools:
  desk: { use: ./desk.mjs, address: "postgres://desk:\${DESK_PASSWORD}@db.example.com/desk" }
  process: { use: mcp, command: "\${NODE}", args: [./process.mjs], env: { DESK_PASSWORD: "\${DESK_PASSWORD}" } }
plugins:
  guard: { use: ./guard.mjs, secret: "\${GUARD_SECRET}" }
agents:
  assistant: { model: fast, system: You are the assistant., tools: [desk, "process/*"] }
  hurried: { model: fast, timeout: 200ms }
`;

const plugin = (name: string, option: string, body: string) => `
  import { definePlugin, Interceptors, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: '${name}', apiVersion: 1, summary: 'Carries a secret',
    configSchema: { type: 'object', properties: { ${option}: { type: 'string' } }, additionalProperties: false },
    register(ctx) { ${body} },
  });
`;

const FILES = {
  // Fails like a database driver does: with the address that it was given, as the cause.
  'desk.mjs': plugin(
    'desk',
    'address',
    `const run = () => {
      const cause = new Error('connect ECONNREFUSED ' + ctx.config.address);
      ctx.log.debug({ err: cause, address: ctx.config.address }, 'asking ' + ctx.config.address);
      throw new Error('the desk is closed', { cause });
    };
    ctx.contribute(ToolSources, { single: true, tools: () => [{ name: 'desk', description: 'Asks', inputSchema: { type: 'object' }, effect: 'read', run }] });`,
  ),
  // Crashes on a word, with its secret in the error, and in what the error carries.
  'guard.mjs': plugin(
    'guard',
    'secret',
    `ctx.contribute(Interceptors, async function* (turn, next) {
      if (JSON.stringify(turn.messages).includes('crash')) {
        throw Object.assign(new TypeError('cannot use ' + ctx.config.secret), { secret: ctx.config.secret, turn });
      }
      yield* next(turn);
    });`,
  ),
  // An MCP server that prints its environment, and fails with it.
  'process.mjs': `
    const password = process.env.DESK_PASSWORD;
    console.error('logging in with ' + password);
    const results = {
      initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'process', version: '1' } },
      'tools/list': { tools: [{ name: 'login', inputSchema: { type: 'object' } }] },
    };
    let rest = '';
    process.stdin.on('data', (data) => {
      const lines = (rest + data).split('\\n');
      rest = lines.pop();
      for (const line of lines) {
        const { id, method } = JSON.parse(line);
        if (id === undefined) continue;
        const answer = results[method] ? { result: results[method] } : { error: { code: -32000, message: 'no login for ' + password } };
        console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
      }
    });
  `,
};

/** A server full of secrets, and all that callers send as credentials. */
export async function startWithSecrets(t: Test) {
  const key = await newKey('one');
  const issuer = await TestIssuer.start(t, key);
  const env = { ...VARIABLES, ISSUER: issuer.url, NODE: process.execPath, PORT: '0' };
  const server = await TestServer.start(t, YAML, { env, files: FILES });

  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer.url, aud: AUDIENCE, sub: 'somebody', org: 'one', iat: now, exp: now + 600 };
  const issued = await tokenCommand(server, 'create', { project: 'default', name: 'ci' });
  const revoked = await tokenCommand(server, 'create', { project: 'default', name: 'revoked' });
  await tokenCommand(server, 'revoke', {}, 'revoked');
  await server.started.server.reload();

  const good = await signed(key, claims);
  const valid = { 'a token of the file': VARIABLES.OPS_TOKEN, 'an issued token': issued, 'a JWT': good };
  const invalid = {
    'an expired token': VARIABLES.OLD_TOKEN,
    'a wrong token': 'canary-token-that-is-wrong',
    'a revoked token': revoked,
    'a mistyped token': `${issued.slice(0, -1)}~`,
    'an expired JWT': await signed(key, { ...claims, exp: now - 600 }),
    'a JWT of a stranger': await signed(await newKey('one'), claims),
    'a JWT that is cut': good.slice(0, -20),
  };
  return {
    server,
    yaml: YAML,
    env: { ...env, MODEL_URL: server.models.url },
    files: FILES,
    credentials: { ...valid, ...invalid },
    valid,
  };
}

/** Finds secrets in a text, also where it holds them as JSON, as a part of a URL or as base64. */
export class Canaries {
  readonly #known: readonly (readonly [text: string, secret: string])[];

  constructor(secrets: Iterable<string>) {
    // Of a JWT its signature and its claims, of any other the whole.
    const parts = [...new Set(secrets)].flatMap((secret) => secret.split('.').filter((part) => part.length >= 16));
    this.#known = parts.flatMap((part) => {
      const forms = [
        part,
        JSON.stringify(part).slice(1, -1),
        encodeURIComponent(part),
        Buffer.from(part).toString('base64').slice(0, -4),
      ];
      return [...new Set(forms)].map((form) => [form, part] as const);
    });
  }

  in(text: string): readonly string[] {
    return this.#known.flatMap(([form, secret]) => (text.includes(form) ? [secret] : []));
  }
}

/** The bytes of all files that a server has written below its folder, a character each. */
export function writtenFiles(server: TestServer): string {
  const data = join(server.started.folder, 'data');
  return readdirSync(data)
    .map((name) => readFileSync(join(data, name), 'latin1'))
    .join('\n');
}
