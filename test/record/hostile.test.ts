/** Recordings that somebody has changed: whatever they say, a rehearsal counts them and goes on. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { seeded } from '../support/seeded.js';
import { saying } from '../support/test-server.js';
import { RecordedServer, type RehearsalJson } from './support.js';

const FILES = 400;
const SEED = Number(process.env.PLUGBOARD_SEED ?? Date.now() % 1_000_000);
const random = seeded(SEED);
const below = (limit: number) => Math.floor(random() * limit);
const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;

const VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  3.5,
  1e308,
  '',
  'x',
  '__proto__',
  '../../etc/passwd',
  'call_\u0000',
  [],
  {},
  [[]],
  ['system'],
  { role: 'tool', tool_call_id: 'none', content: 'x' },
  { role: 'assistant', content: null },
  { type: 'end', reason: 'stop' },
  { type: 'text', text: 'x'.repeat(10_000) },
  'stop',
  'abandoned',
  'length',
  'nonsense',
  'assistant',
  'ops',
  'other',
];

/** Replaces a value somewhere below. */
function mutated(value: unknown): unknown {
  if (random() < 0.15 || typeof value !== 'object' || value === null) return pick(VALUES);
  if (Array.isArray(value)) {
    if (value.length === 0 || random() < 0.2) return [...value, pick(VALUES)];
    const at = below(value.length);
    if (random() < 0.2) return value.toSpliced(at, 1);
    if (random() < 0.2) return [...value, value[at]];
    return value.with(at, mutated(value[at]));
  }
  const keys = Object.keys(value);
  if (keys.length === 0) return { x: pick(VALUES) };
  const key = pick(keys);
  const { [key]: chosen, ...rest } = value as Record<string, unknown>;
  return random() < 0.1 ? rest : { ...value, [key]: mutated(chosen) };
}

t.test(`${FILES} changed recordings are counted, without a crash (seed ${SEED})`, async (t) => {
  const server = await RecordedServer.start(t);
  const { app } = server;
  app.models.enqueue(
    { status: 503, retryAfter: 0 },
    {
      toolCalls: [
        { name: 'desk__look', arguments: { ticket: 7 } },
        { name: 'desk__fail', arguments: {} },
      ],
    },
    { text: 'It is open.' },
  );
  await app.chat(saying('Look at 7', { session_id: 'one' }));
  const [name = ''] = await server.files(1);
  const lines = (await readFile(join(server.folder, name), 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const folder = join(app.started.folder, 'changed');
  await mkdir(folder);
  for (let file = 0; file < FILES; file++) {
    const at = below(lines.length);
    const changed = random() < 0.1 ? lines.toSpliced(at, 1) : lines.with(at, mutated(lines[at]));
    const path = join(folder, `20260101T000000${String(file).padStart(3, '0')}Z-turn_${file}.jsonl`);
    await writeFile(path, `${changed.map((line) => JSON.stringify(line)).join('\n')}\n`);
  }
  const { code, output, notes } = await server.run('rehearse', ['--from', folder, '--json']);
  const { turns, same, changed, failed, failures } = JSON.parse(output) as RehearsalJson;
  t.comment(`${same} the same, ${changed} changed, ${failed} refused`);
  t.equal(turns, FILES);
  t.equal(same + changed + failed, FILES);
  t.ok(changed > 0 && failed > 0);
  t.equal(code, 78, 'a rehearsal that lacks a recording fails');
  t.equal(failures.length, failed);
  t.strictSame(
    notes.split('\n').filter((line) => !/^plugboard: \S+\.jsonl (?:is|has) \S/.test(line)),
    [],
  );
});
