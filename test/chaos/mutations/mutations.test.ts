/**
 * Mutated requests and messages of one caller, while another works. Nothing that a caller, a model
 * or a tool sends ends the server, holds its event loop, or stays in its memory.
 *
 * `PLUGBOARD_SEED=7` plays other cases than usual; `PLUGBOARD_CASE=123` plays one.
 */
import type { ModelServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { STORE, startWithAllRoutes, TRANSPORTS } from '../../attacks/support/all-routes.js';
import { everyRoute } from '../../attacks/support/every-route.js';
import { Neighbour } from '../../attacks/support/neighbour.js';
import { ServerProcess } from '../../attacks/support/server-process.js';
import { LENGTH, rounds } from '../../support/rounds.js';
import { Attacker } from './attacker.js';
import { caseOf } from './cases.js';
import { LOOP_WATCH, LOOP_WATCH_FILES, type Stall, stallsOf } from './loop-watch.js';
import { mutate } from './mutate.js';
import { Random } from './random.js';

const CASES = Number(process.env.PLUGBOARD_CASES ?? rounds({ short: 200, long: 20_000, soak: 150_000 }));
const SEED = Number(process.env.PLUGBOARD_SEED ?? (LENGTH === 'soak' ? Date.now() % 1_000_000 : 33));
const ONLY = process.env.PLUGBOARD_CASE;
const LIMIT = 60_000 + CASES * 30;
t.setTimeout(LIMIT * 4);

/** Cases that are sent at the same time. */
const CONNECTIONS = 6;
/** Milliseconds of processor time for which nothing may hold the event loop. */
const MAX_HELD = 300;
/**
 * MiB of live heap, beside what the server counts, that the second half of the cases may add.
 * Caches with limits of their own still fill then: events of responses that can be resumed, and
 * schemas of sessions in memory.
 */
const MAX_GROWTH = 32;
const MIB = 1024 * 1024;

const [ATTACKER, INNOCENT] = ['token-of-the-attacker', 'token-of-the-neighbour'];
const YAML = `${TRANSPORTS}${STORE}
auth: { bearer: { tokens: [
  { name: attacker, project: acme, token: ${ATTACKER} }, { name: neighbour, project: beta, token: ${INNOCENT} } ] } }
projects: { acme: {}, beta: {} }
plugins:
${LOOP_WATCH}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}", input: [text, image] }
  gemini: { use: openai, provider: gemini, baseUrl: "\${MODEL_URL}", model: big-2, apiKey: "\${MODEL_KEY}", input: [text, image] }
tools:
  own: { use: ./own.mjs }
agents:
  assistant: { model: fast, project: acme, tools: [own], system: You are the assistant. }
  translated: { model: gemini, project: acme, tools: [own] }
  other: { model: fast, project: beta }
`;

/** A tool whose schema its arguments must match, and which returns them. */
const TOOL = {
  'own.mjs': `
    import { definePlugin, ToolSources } from '@plugboard/kernel';
    const text = { type: 'string', pattern: '^[a-z ]*$', maxLength: 100000 };
    const inputSchema = { type: 'object', properties: { q: text, list: { type: 'array', items: { anyOf: [text, { $ref: '#' }] } } } };
    const run = async (input) => ({ content: [{ type: 'text', text: JSON.stringify(input) }, { type: 'image', mimeType: 'image/png', data: 'A'.repeat(input.q?.length ?? 0) }] });
    const tools = [{ name: 'own', description: 'Finds', effect: 'read', inputSchema, run }];
    export default definePlugin({
      name: 'own', apiVersion: 1, summary: 'A tool', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: async () => tools }),
    });`,
};

t.test(
  `S-35 S-49 S-55 S-62 ${CASES} mutated bodies and messages neither end nor hold up a server, nor stay in its memory`,
  async (t) => {
    t.setTimeout(LIMIT * 2);
    t.comment(`PLUGBOARD_SEED=${SEED}`);
    const routes = await routesOf(t);
    const server = await ServerProcess.start(t, {
      yaml: YAML,
      files: { ...LOOP_WATCH_FILES, ...TOOL },
      env: { PORT: '0' },
      heap: 256,
      collectsGarbage: true,
    });
    answerOddly(server.models);
    const attackers = Array.from({ length: CONNECTIONS }, () => new Attacker(server, ATTACKER));
    t.teardown(() => {
      for (const attacker of attackers) attacker.close();
    });

    let next = 0;
    const sent: { readonly title: string; readonly begin: number; end: number }[] = [];
    const play = async (upTo: number) => {
      await Promise.all(
        attackers.map(async (attacker) => {
          while (next < upTo && server.running) {
            const one = caseOf(SEED, ONLY === undefined ? next++ : Number(ONLY), routes, await attacker.known());
            if (ONLY !== undefined) next = upTo;
            const entry = {
              title: `${one.title}, ${one.body?.length ?? 0} bytes`,
              begin: Date.now(),
              end: Number.POSITIVE_INFINITY,
            };
            sent.push(entry);
            await attacker.send(one);
            entry.end = Date.now();
          }
        }),
      );
      if (server.running) return;
      await server.closed();
      const last = sent.filter(({ end }) => end >= Date.now() - 1_000).map(({ title }) => title);
      throw new Error(`the server ended, after\n  ${last.join('\n  ')}\n${server.stderr.slice(-3_000)}`);
    };
    const stalls: Stall[] = [];
    const neighbour = new Neighbour(server, { token: INNOCENT, model: 'other', connections: 1, pause: 20 });
    await play(CASES / 2);
    stalls.push(...(await stallsOf(server)));
    const before = await uncounted(server);
    await stallsOf(server); // the collection above
    await play(CASES);
    t.ok(server.running, 'the process lives');
    stalls.push(...(await stallsOf(server)));
    const measured = await neighbour.stop();
    const after = await uncounted(server);

    const held = stalls.filter(({ held }) => held > MAX_HELD);
    for (const { held: ms, gap, end, collecting } of held) {
      const suspects = sent.filter((one) => one.begin <= end && one.end >= end - gap - 20).map(({ title }) => title);
      t.comment(`held for ${Math.round(ms)} ms, of it at most ${collecting} ms for garbage, during\n  ${suspects.join('\n  ')}`);
    }
    const outcomes = attackers.map(({ outcomes }) => outcomes);
    t.comment(`neighbour ${JSON.stringify(measured)}, peak ${Math.round(server.peakMemory())} MiB`);
    t.comment(`live heap beside what is counted: ${Math.round(before / MIB)} MiB, then ${Math.round(after / MIB)} MiB`);
    t.comment(
      `longest: ${stalls
        .map(({ held }) => Math.round(held))
        .sort((a, b) => b - a)
        .slice(0, 10)
        .join(', ')} ms`,
    );
    const { limits } = await server.status();
    t.comment(
      `counted: ${JSON.stringify(limits.filter(({ used }) => used > 0).map(({ name, used, peak }) => [name, used, peak]))}`,
    );
    t.comment(JSON.stringify(sumOf(outcomes.map(({ counts }) => counts))));
    t.strictSame(
      held.map(({ held }) => Math.round(held)),
      [],
      `nothing holds the event loop for more than ${MAX_HELD} ms`,
    );
    t.strictSame(
      outcomes.flatMap(({ faults }) => faults),
      [],
      'every case is answered, and none is a fault of the server',
    );
    t.strictSame(
      server.log.filter(({ level }) => level === 'error' || level === 50).map(({ msg, err }) => [msg, err]),
      [],
      'no fault is logged',
    );
    t.same(measured.failures, {}, 'the other caller is served');
    t.ok(measured.turns > 0);
    t.ok((after - before) / MIB < MAX_GROWTH, 'nothing stays');
  },
);

/**
 * Bytes of the live heap beside what the server counts and limits: caches, and answers to resume.
 */
async function uncounted(server: ServerProcess): Promise<number> {
  const { memory, limits } = await server.status();
  const counted = limits.filter(({ limit }) => limit >= MIB).reduce((sum, { used }) => sum + used, 0);
  return memory.heap_used + memory.external - counted;
}

/** The routes of the same distribution, from a server in this process. */
async function routesOf(t: Test) {
  const server = await startWithAllRoutes(t);
  const routes = everyRoute(server);
  await server.stop();
  return routes;
}

/** The model is hostile, too: now and then it calls the tool with mutated arguments, or babbles. */
function answerOddly(models: ModelServer): void {
  let asked = 0;
  models.respond(({ body }) => {
    const random = new Random(SEED, -asked++);
    if (body.model === 'big-2' || body.messages.at(-1)?.role === 'tool' || random.chance(0.8)) return { text: 'Hello' };
    if (random.chance(0.3)) return { text: ['word '.repeat(random.count(50_000)), '\u0000é👩'.repeat(random.count(10_000))] };
    const { bytes } = mutate({ q: 'abc', list: ['a', { q: 'b', list: [] }] }, random);
    const text = String(bytes.subarray(0, 1_000_000));
    const size = random.pick([4, 100, 10_000]);
    const fragments = Array.from({ length: Math.min(20_000, Math.ceil(text.length / size)) }, (_, at) =>
      text.slice(at * size, (at + 1) * size),
    );
    return { toolCalls: [{ name: 'own', arguments: fragments }] };
  });
}

function sumOf(counts: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const sum: Record<string, number> = {};
  for (const [key, count] of counts.flatMap((one) => Object.entries(one))) sum[key] = (sum[key] ?? 0) + count;
  return sum;
}
