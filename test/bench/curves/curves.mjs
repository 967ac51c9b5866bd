// What grows in each curve, and what is measured there. A curve is a list of cells: a kind of turn
// at a server, at one place of the axis.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds, open } from '../load.mjs';
import { prefill } from '../prefill.mjs';
import { HERE, startPlain, startPlugboard } from '../servers.mjs';

const json = { complete: (text) => text.includes('token099') };
const asking = (fields) => ({
  ...json,
  fields: { model: 'assistant', messages: [{ role: 'user', content: 'json' }], ...fields },
});

/** @param rounds how often each cell is measured. */
export async function curves({ modelPort, folder, rounds, quick }) {
  const upTo = (limit, values) => values.filter((value) => value <= (quick ? limit : Number.POSITIVE_INFINITY));
  const raw = await startPlain('raw-pipe', modelPort);
  const file = (name) => join(folder, `${name}.db`);
  const start = (name, config = 'curves/curves.yaml') =>
    startPlugboard(name, { checkout: HERE, modelPort, sessions: file(name), config });
  const lengths = upTo(1_000, [10, 100, 1_000, 10_000]);
  const perRound = (length) => Math.max(1, 500 / length);
  for (const agent of ['recent', 'assistant']) {
    const names = lengths.flatMap((length) =>
      Array.from({ length: length < 10_000 ? rounds * perRound(length) : 1 }, (_, index) => [`${length} ${index}`, length]),
    );
    await prefill(HERE, file('plugboard'), Object.fromEntries(names), agent);
  }
  const plugboard = await start('plugboard');
  return [
    {
      title: 'Messages in the conversation',
      xLabel: 'messages',
      cells: lengths.flatMap((x) => [
        inSession('session, 10 sent', plugboard, 'recent', x, perRound(x)),
        inSession('session, all sent', plugboard, 'assistant', x, perRound(x)),
        { series: 'stateless', x, server: plugboard, kind: conversation(x) },
        { series: 'R', x, server: raw, kind: conversation(x) },
      ]),
    },
    await storedSessions(upTo(10_000, [10, 100, 1_000, 10_000, 100_000])),
    {
      title: 'Agents',
      xLabel: 'agents',
      cells: await Promise.all(
        [1, 10, 100, 1_000].map(async (x) => ({
          series: 'JSON turn',
          x,
          server: await start(`agents-${x}`, agentsConfig(x)),
          kind: asking({ model: `agent_${Math.floor(x / 2)}` }),
        })),
      ),
    },
    {
      title: 'Tools',
      xLabel: 'tools',
      cells: [1, 10, 100, 500].flatMap((x) => [
        { series: 'of the agent', x, server: plugboard, kind: asking({ model: `tools${x}` }) },
        { series: 'of the caller', x, server: plugboard, kind: withTools(x) },
        { series: 'R, of the caller', x, server: raw, kind: withTools(x) },
      ]),
    },
    {
      title: 'Open streams',
      xLabel: 'open streams',
      cells: upTo(1_000, [1, 10, 100, 1_000, 5_000]).flatMap((x) => [
        { series: 'JSON turn meanwhile', x, server: plugboard, kind: kinds.json, during: () => open(plugboard.port, x) },
        { series: 'R', x, server: raw, kind: kinds.json, during: () => open(raw.port, x) },
      ]),
    },
    {
      title: 'Size of the request',
      xLabel: 'size',
      bytes: true,
      cells: [1e3, 1e4, 1e5, 1e6].flatMap((x) => [
        { series: 'JSON turn', x, server: plugboard, kind: ofSize(x) },
        { series: 'R', x, server: raw, kind: ofSize(x) },
      ]),
    },
  ];

  async function storedSessions(counts) {
    const cells = [];
    for (const x of counts) {
      await prefill(HERE, file(`stored-${x}`), Object.fromEntries(Array.from({ length: x }, (_, at) => [`s ${at}`, 2])));
      const server = await start(`stored-${x}`);
      const kind = asking({ model: 'recent' });
      let stored = 10;
      let created = 0;
      cells.push({ series: 'in memory', x, server, kind, session: (caller, sent) => `s ${(caller + sent) % 10}` });
      if (x < 1_000) continue; // their number would grow by what is measured
      cells.push(
        { series: 'from the store', x, server, kind, most: 100, session: () => `s ${stored++ % x}` },
        { series: 'new', x, server, kind, most: 100, session: () => `new ${created++}` },
      );
    }
    return { title: 'Stored sessions', xLabel: 'stored sessions', cells };
  }
}

/** A turn in sessions that have so many messages: other ones in each round, because they grow. */
function inSession(series, server, model, x, sessions) {
  const turns = Math.max(2, Math.min(x / 10, 50, model === 'recent' ? 50 : 1e5 / x));
  return {
    series,
    x,
    server,
    kind: asking({ model }),
    most: sessions * turns,
    /** Loads the sessions of a round first. */
    before: (round) => ({ count: sessions, session: (_, sent) => nameOf(round, sent) }),
    sessionOf: (round) => (_, sent) => nameOf(round, sent % sessions),
  };
  function nameOf(round, index) {
    return `${x} ${x < 10_000 ? round * sessions + index : 0}`;
  }
}

/** A whole conversation of so many messages. Chat completions take 2,048 at most. */
function conversation(length) {
  const messages = Array.from({ length: length - 1 }, (_, index) =>
    index % 2 === 0 ? { role: 'user', content: `turn ${index}` } : { role: 'assistant', content: ' token'.repeat(100) },
  );
  return { path: '/v1/messages', ...asking({ max_tokens: 1_000, messages: [...messages, { role: 'user', content: 'json' }] }) };
}

function ofSize(bytes) {
  return asking({ messages: [{ role: 'user', content: `json ${'word '.repeat(bytes / 5)}`.slice(0, bytes - 80) }] });
}

/** With so many tools of the caller. Chat completions take 128 at most. */
function withTools(count) {
  const tools = Array.from({ length: count }, (_, index) => ({
    name: `tool_${index}`,
    description: `Reads a file and returns its lines, each with its number. This is tool ${index}.`,
    input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  }));
  return { path: '/v1/messages', ...asking({ model: 'coder', max_tokens: 1_000, tools }) };
}

/** Writes a configuration with so many agents. It is below the workspace, where packages are. */
function agentsConfig(count) {
  const folder = join(HERE, 'node_modules/.cache/plugboard-bench');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `agents-${count}.yaml`);
  const agents = Array.from({ length: count }, (_, n) => `  agent_${n}: { model: bench, system: You are agent ${n}. }\n`);
  const config = `
transports:
  http: { port: "\${BENCH_PORT}" }
  chat-completions: {}
  health: {}
models:
  bench: { use: openai, model: bench, baseUrl: "http://127.0.0.1:\${MODEL_PORT}/v1" }
agents:
${agents.join('')}defaultAgent: agent_0
`;
  writeFileSync(file, config);
  return file;
}
