/**
 * Answers of every provider that are cut after each byte, and answers whose events are mutated: a
 * clear failure or a whole answer, and nothing that stays behind.
 *
 * `PLUGBOARD_SEED=7` plays other mutations than usual.
 */
import type { ModelError, ModelEvent } from '@plugboard/kernel';
import { eventually, modelRequest } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { rounds } from '../../../test/support/rounds.js';
import { seeded } from '../../../test/support/seeded.js';
import { CLOCK, open, PROVIDERS, type ProviderName } from './connection.js';
import { frame as bedrockFrame } from './servers/bedrock.js';
import type { RawAnswer } from './servers/native-server.js';

const NAMES = Object.keys(PROVIDERS) as ProviderName[];
const SEED = Number(process.env.PLUGBOARD_SEED ?? 1);
const MUTATIONS = Number(process.env.PLUGBOARD_CASES ?? rounds({ short: 20, long: 300, soak: 5_000 }));
/** Bytes between two cuts. */
const STEP = Number(process.env.PLUGBOARD_STEP ?? rounds({ short: 100, long: 5, soak: 1 }));
const ANSWER = {
  thinking: ['Let me think.'],
  text: ['It is ', 'nöon. '],
  calls: [{ id: 'a', name: 'clock', input: { zone: 'Europe/Berlin' } }],
  usage: [20, 8, 5, 2],
} as const;

t.setTimeout(900_000);

const rejections: unknown[] = [];
process.on('unhandledRejection', (reason) => rejections.push(reason));

type Server = Awaited<ReturnType<typeof open>>;

/** What came of an answer: its events, and the error that ended it. */
async function play({ server, connector }: Server, answer: RawAnswer) {
  server.enqueue(answer);
  const events: ModelEvent[] = [];
  try {
    const request = modelRequest('Time?', { tools: [CLOCK] });
    for await (const batch of connector.stream(request, new AbortController().signal)) events.push(...batch);
  } catch (error) {
    return { events, error: error as ModelError };
  }
  return { events, error: undefined };
}

/** What is wrong with an outcome, whatever was sent. */
function faultOf({ events, error }: Awaited<ReturnType<typeof play>>): string | undefined {
  const ends = events.filter(({ type }) => type === 'end').length;
  if (error) {
    if (error.name !== 'ModelError') return `${error.name}: ${error.stack}`;
    if (error.message.length < 20 || error.message.length > 900) return `the message says nothing: ${error.message}`;
    return ends > 0 ? 'it failed after its end' : undefined;
  }
  if (ends !== 1 || events.at(-1)?.type !== 'end') return `it ended ${ends} times`;
  for (const event of events) {
    if (event.type === 'usage' && Object.values(event.usage).some((count) => !Number.isSafeInteger(count) || count < 0))
      return `tokens ${JSON.stringify(event.usage)}`;
    if (event.type === 'tool-call' && (typeof event.name !== 'string' || typeof event.arguments !== 'string' || event.id === ''))
      return `a call ${JSON.stringify(event)}`;
  }
  return undefined;
}

/** The bytes of a whole answer, and the events that it becomes. */
async function record(app: Server) {
  const bytes = Buffer.concat(app.server.frames(ANSWER).map((frame) => Buffer.from(frame as string)));
  const { events, error } = await play(app, { frames: [bytes] });
  return { bytes, events, error };
}

const textOf = (events: readonly ModelEvent[]) => events.map((event) => (event.type === 'text' ? event.text : '')).join('');

for (const name of NAMES) {
  t.test(`${name}: an answer that is cut after any byte`, async (t) => {
    const app = await open(t, name);
    const { bytes, events, error } = await record(app);
    t.equal(error, undefined);
    const whole = textOf(events);
    const faults: string[] = [];
    let complete = 0;
    for (let cut = 0; cut < bytes.length; cut += STEP) {
      const outcome = await play(app, { frames: [bytes.subarray(0, cut)], cut: (cut / STEP) % 2 === 1 });
      const fault = faultOf(outcome);
      if (fault !== undefined) faults.push(`${cut}: ${fault}`);
      if (!whole.startsWith(textOf(outcome.events))) faults.push(`${cut}: other text`);
      if (outcome.error === undefined) {
        complete++;
        if (textOf(outcome.events) !== whole || !outcome.events.some(({ type }) => type === 'tool-call'))
          faults.push(`${cut}: half an answer`);
      } else if (!outcome.error.retryable) faults.push(`${cut}: not retryable: ${outcome.error.message}`);
    }
    t.same(faults.slice(0, 5), [], `${bytes.length} bytes, cut at every ${STEP}th; ${complete} cuts were behind the end`);
    await settled(t, app);
  });

  t.test(`${name}: events that are mutated`, async (t) => {
    const app = await open(t, name);
    const { bytes } = await record(app);
    const random = seeded(SEED);
    const faults: string[] = [];
    for (let index = 0; index < MUTATIONS; index++) {
      const frames = mutated(app.server.frames(ANSWER) as readonly (string | Uint8Array)[], random);
      const outcome = await play(app, { frames });
      const fault = faultOf(outcome);
      if (fault !== undefined)
        faults.push(
          `${index}: ${fault} ${Buffer.concat(frames.map((frame) => Buffer.from(frame)))
            .toString()
            .slice(0, 3000)}`,
        );
    }
    t.same(faults.slice(0, 3), [], `${MUTATIONS} mutations of ${bytes.length} bytes`);
    await settled(t, app);
  });
}

async function settled(t: Test, { server }: Server): Promise<void> {
  await eventually(() => server.openSockets <= 2);
  t.same(rejections, [], 'no unhandled rejection');
}

/** Frames in another order, twice, left out, or with other values. */
function mutated(frames: readonly (string | Uint8Array)[], random: () => number): (string | Uint8Array)[] {
  const result = [...frames];
  const at = () => Math.floor(random() * result.length);
  for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
    const from = at();
    const frame = result[from];
    if (frame === undefined) continue;
    const kind = random();
    if (kind < 0.1) result.splice(from, 1);
    else if (kind < 0.2) result.splice(at(), 0, frame);
    else if (kind < 0.3) result.splice(at(), 0, ...result.splice(from, 1));
    else result[from] = withOtherValue(frame, random);
  }
  return result;
}

const VALUES = ['-1', '1e400', '1e30', '0.5', '"x"', '""', 'null', '[]', '{}', 'true', '[{}]', '"\\ud83d"', '{"a":', ''];

/** Replaces a value of the JSON in an event, or cuts it. */
function withOtherValue(frame: string | Uint8Array, random: () => number): string | Uint8Array {
  if (typeof frame === 'string') return replaced(frame, random);
  const json = Buffer.from(frame).toString('latin1');
  const start = json.indexOf('{"');
  const [, type = ''] = /event-type[\s\S]{3}(\w+)/.exec(json) ?? [];
  try {
    return bedrockFrame(type, JSON.parse(replaced(json.slice(start, -4), random)));
  } catch {
    const broken = Uint8Array.from(frame);
    broken[Math.floor(random() * frame.length)] = Math.floor(random() * 256);
    return broken;
  }
}

function replaced(json: string, random: () => number): string {
  const values = [...json.matchAll(/(?<=":)("(?:[^"\\]|\\.)*"|-?\d+|null|\{\}|\[\])/g)];
  const match = values[Math.floor(random() * values.length)];
  if (!match) return json;
  const value = VALUES[Math.floor(random() * VALUES.length)] ?? '';
  return json.slice(0, match.index) + value + json.slice(match.index + match[0].length);
}
