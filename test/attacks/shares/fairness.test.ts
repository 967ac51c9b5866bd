/**
 * One caller that takes all it can get, while others work (S-41). Each server is a process of its
 * own.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { AUDIENCE, newKey, signed, TestIssuer } from '../../../plugins/auth-jwt/test/support/issuer.js';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';
import { Neighbour } from '../support/neighbour.js';
import { ServerProcess } from '../support/server-process.js';

const [GREEDY, COLLEAGUE, INNOCENT] = ['token-of-greedy-caller', 'token-of-its-colleague', 'token-of-other-project'];
/** Places, and places in the queue. */
const [RUNNING, QUEUED] = [8, 8];

const FILE = `${TRANSPORTS}${ASSISTANT}  innocents: { model: fast, project: quiet }
limits: { runningTurns: ${RUNNING}, queuedTurns: ${QUEUED} }
projects: { loud: { defaultAgent: loud }, quiet: { defaultAgent: innocents } }
`.replace('agents:\n', 'agents:\n  loud: { model: fast, project: loud }\n');

const TOKENS = `  bearer: { tokens: [
    { name: greedy, project: loud, token: ${GREEDY} }, { name: colleague, project: loud, token: ${COLLEAGUE} },
    { name: innocent, project: quiet, token: ${INNOCENT} } ] }\n`;

const HELD = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'hold' }] });

/** Requests of callers that want everything. */
class Flood {
  readonly statuses: number[] = [];
  readonly #abort = new AbortController();
  readonly #server: ServerProcess;

  constructor(server: ServerProcess) {
    this.#server = server;
  }

  /** Sends so many requests whose turns do not end, and asks again for each that is refused. */
  start(token: string, connections: number): void {
    for (let at = 0; at < connections; at++) void this.#loop(token);
  }

  async #loop(token: string): Promise<void> {
    const headers = { 'content-type': 'application/json', ...bearer(token) };
    while (!this.#abort.signal.aborted) {
      try {
        const init = { method: 'POST', headers, body: HELD, signal: this.#abort.signal };
        const { status } = await this.#server.request('/v1/chat/completions', init);
        this.statuses.push(status);
      } catch {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  stop(): void {
    this.#abort.abort();
  }
}

async function startWithLimits(t: Test, auth = ''): Promise<{ server: ServerProcess; flood: Flood; asked: () => number }> {
  const server = await ServerProcess.start(t, { yaml: `${FILE}auth:\n${TOKENS}${auth}` });
  const forever = new Promise<void>(() => {});
  server.models.respond(({ body }) => (body.messages.at(-1)?.content === 'hold' ? { before: forever } : { text: 'Hello' }));
  const flood = new Flood(server);
  t.teardown(() => flood.stop());
  return { server, flood, asked: () => server.models.requests.length };
}

async function isServed(t: Test, server: ServerProcess, token: string): Promise<void> {
  const neighbour = new Neighbour(server, { token, model: 'any' });
  await eventually(() => neighbour.turns >= 20 || neighbour.hasFailed);
  const measured = await neighbour.stop();
  t.comment(JSON.stringify(measured));
  t.same(measured.failures, {});
}

t.test('S-41 one token cannot take every place and the whole queue', async (t) => {
  const { server, flood, asked } = await startWithLimits(t);
  flood.start(GREEDY, 40);
  await eventually(() => flood.statuses.length > 20 && asked() >= RUNNING / 2);
  t.equal(asked(), RUNNING / 2, 'it holds its share of the places');
  t.same([...new Set(flood.statuses)], [503]);
  await isServed(t, server, INNOCENT);
  await isServed(t, server, COLLEAGUE);

  flood.start(COLLEAGUE, 40);
  await eventually(() => asked() > 20 + 20 + RUNNING / 2 && flood.statuses.length > 60);
  await isServed(t, server, INNOCENT);
  server.kill('SIGUSR2');
  const { limits } = await server.logs('status');
  const running = (limits as { setting: string; used: number; limit: number }[]).find(
    ({ setting }) => setting === 'limits.runningTurns',
  );
  t.match(running, { used: (RUNNING * 3) / 4, limit: RUNNING }, 'both together hold the share of their project');
});

t.test('S-41 the same holds for subjects of a JWT, which can have limits of their own', async (t) => {
  const key = await newKey('one');
  const issuer = await TestIssuer.start(t, key);
  const { server, flood, asked } = await startWithLimits(
    t,
    `  jwt: { issuer: "${issuer.url}", audience: "${AUDIENCE}", runningTurns: 2, project: { claim: org, map: { loud: loud, quiet: quiet } } }\n`,
  );
  const tokenOf = (sub: string, org: string) =>
    signed(key, { iss: issuer.url, aud: AUDIENCE, exp: Date.now() / 1000 + 600, sub, org });
  flood.start(await tokenOf('greedy', 'loud'), 20);
  await eventually(() => flood.statuses.length > 20 && asked() >= 2);
  t.equal(asked(), 2);
  t.same([...new Set(flood.statuses)], [429], 'its own limit refuses at once');
  await isServed(t, server, await tokenOf('ada', 'quiet'));
  await isServed(t, server, await tokenOf('colleague', 'loud'));
});

t.test('S-41 all callers of a project share its requests per minute, and a reload changes them', async (t) => {
  const file = (limit: number) =>
    `${FILE.replace('loud: { defaultAgent: loud }', `loud: { defaultAgent: loud, requestsPerMinute: ${limit} }`)}auth:\n${TOKENS}`;
  const server = await ServerProcess.start(t, { yaml: file(4) });
  const list = (token: string) => server.request('/v1/models', { headers: bearer(token) });
  const statuses: number[] = [];
  for (const token of [GREEDY, COLLEAGUE, GREEDY, COLLEAGUE, GREEDY, COLLEAGUE]) statuses.push((await list(token)).status);
  t.same(statuses.slice(0, 4), [200, 200, 200, 200]);
  const refused = await list(GREEDY);
  t.equal(refused.status, 429);
  t.match(JSON.parse(refused.text), { error: { code: 'rate_limit_exceeded', message: /`requestsPerMinute`/ } });
  t.ok(Number(refused.headers.get('retry-after')) > 0);
  for (let n = 0; n < 10; n++) t.equal((await list(INNOCENT)).status, 200, 'another project has no limit');
  t.equal((await server.request('/health')).status, 200);

  writeFileSync(join(server.folder, 'plugboard.yaml'), file(1_000));
  server.kill('SIGHUP');
  await eventually(() => server.log.some(({ event }) => event === 'configuration_changed'));
  t.equal((await list(GREEDY)).status, 200);
});
