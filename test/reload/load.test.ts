/**
 * Reloads under load lose no request and leave nothing behind (configuration.md, rule 8).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../support/rounds.js';
import { answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const RELOADS = rounds({ short: 15, long: 100, soak: 500 });
const CLIENTS = 8;
/** Growth of the heap that is not a leak. */
const MOST_GROWTH = 2 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const MCP_SERVER = fileURLToPath(new URL('../../plugins/tool-mcp/test/fixtures/server.mjs', import.meta.url));

/**
 * The agent, its model's key and one of its tools change with every number; the MCP server with
 * every tenth.
 */
function yaml(n: number): string {
  const args = JSON.stringify([MCP_SERVER, '--page', String(10 + Math.floor(n / 10))]);
  return `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "$\{MODEL_URL}", model: big-1, apiKey: key-number-${n}-of-the-test }
tools:
  clock: { timeZone: ${n % 2 === 0 ? 'UTC' : 'Europe/Paris'} }
  x: { use: mcp, command: ${JSON.stringify(process.execPath)}, args: ${args} }
agents:
  assistant: { model: fast, system: "You are number ${n}.", tools: [clock, x] }
`;
}

/** What is open in this process, by kind. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

t.setTimeout(240_000);

t.test(`rule 8: ${RELOADS} reloads under load fail no request and leave nothing behind`, async (t) => {
  const app = await TestServer.start(t, yaml(0));
  const file = join(app.started.folder, 'plugboard.yaml');
  const { server } = app.started;
  app.models.respond(({ body }) => ({ text: String(body.messages[0]?.content) }));
  const idle = async () => {
    await eventually(() => server.leaving.length === 0);
    for (let round = 0; round < 3; round++) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return { heap: process.memoryUsage().heapUsed, resources: resources() };
  };

  let running = true;
  let requests = 0;
  const failures: string[] = [];
  let latest = 0;
  const client = async (stream: boolean) => {
    while (running) {
      const least = latest;
      requests++;
      const text = stream
        ? await app.stream(saying('hello')).then((reply) => (reply.status === 200 ? reply.text : `status ${reply.status}`))
        : await app.chat(saying('hello')).then((reply) => (reply.status === 200 ? answerOf(reply) : reply.text));
      const seen = Number(/^You are number (\d+)\.$/.exec(text)?.[1] ?? -1);
      if (seen < least) failures.push(`after the reload ${least}: ${text}`);
    }
  };

  const milliseconds: number[] = [];
  const reload = async (n: number) => {
    await writeFile(file, yaml(n));
    const result = await server.reload();
    if (result.refused) throw result.refused;
    milliseconds.push(result.milliseconds);
    latest = n;
  };
  const load = (from: number, to: number) => async () => {
    running = true;
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(index % 2 === 0));
    for (let n = from; n <= to; n++) await reload(n);
    running = false;
    await Promise.all(clients);
  };

  await load(1, 20)();
  const before = await idle();
  await load(21, 20 + RELOADS)();
  const after = await idle();
  t.strictSame(failures, [], 'each request sees at least the configuration in force when it was sent');
  t.ok(requests > RELOADS, `${requests} requests`);
  for (const kind of ['ProcessWrap', 'PipeWrap', 'Timeout', 'TCPServerWrap', 'TCPSocketWrap']) {
    const [first = 0, last = 0] = [before.resources[kind], after.resources[kind]];
    // Connection pools grow to the number of requests that happened to meet, on both of their ends.
    const pooled = kind === 'TCPSocketWrap' ? CLIENTS : 0;
    t.ok(last <= first + pooled, `${kind}: ${first} before, ${last} after`);
  }
  const reported = `${requests} requests during ${20 + RELOADS} reloads, ${failures.length} failures`;

  // Without load: what a request leaves behind, such as its line of the captured log, is not the
  // server's.
  for (let n = 0; n < RELOADS; n++) await reload(1000 + n);
  const rested = await idle();
  const growth = rested.heap - after.heap;
  t.ok(growth < MOST_GROWTH, `the heap grew by ${Math.round(growth / 1024)} KiB in ${RELOADS} reloads`);

  const sorted = milliseconds.slice(20, 20 + RELOADS).toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  t.comment(reported);
  t.comment(`milliseconds from the request to the new configuration: p50 ${at(0.5)}, p99 ${at(0.99)}`);
  t.comment(`the heap grew by ${Math.round(growth / 1024)} KiB in ${RELOADS} more reloads without load`);
});
