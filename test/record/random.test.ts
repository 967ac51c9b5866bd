/** Turns by chance: a replay with the same configuration changes nothing in any of them. */
import { type Script, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { saying } from '../support/test-server.js';
import { CONFIG, RecordedServer } from './support.js';

const TURNS = rounds({ short: 60, long: 800, soak: 8000 });
// The same program each time, but in a soak. In the long one a client leaves between the result of
// an approved call and the first step.
const SEED = Number(process.env.PLUGBOARD_SEED ?? rounds({ short: 7, long: 400_310, soak: Date.now() % 1_000_000 }));

const random = seeded(SEED);
const below = (limit: number) => Math.floor(random() * limit);
const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;

const TOOLS = ['look', 'close', 'fail', 'photo', 'fly'];
const ARGUMENTS = ['{"ticket":1}', '{"ticket":2}', '{}', '{"ticket":"x"}', '{', '{ "ticket": 3 }'];

function answer(): Script {
  const chance = random();
  const text = `word ${below(1000)}`;
  const usage = { promptTokens: below(1000), completionTokens: below(100) };
  if (chance < 0.35) {
    const toolCalls = Array.from({ length: 1 + below(4) }, () => ({ name: `desk__${pick(TOOLS)}`, arguments: pick(ARGUMENTS) }));
    return { toolCalls, usage, ...(random() < 0.5 && { text }), ...(random() < 0.3 && { reasoning: 'because' }) };
  }
  if (chance < 0.42) return { status: pick([500, 503, 429]), retryAfter: 0 };
  if (chance < 0.46) return { status: pick([400, 401, 404]) };
  if (chance < 0.5) return { text: [text, ' more'], cut: { afterEvents: 1 + below(3) } };
  if (chance < 0.53) return { text, finishReason: 'length' };
  if (chance < 0.55) return { refusal: 'I will not.' };
  return { text: [text, ' ', 'and so on'], usage: random() < 0.2 ? null : usage };
}

t.test(`${TURNS} turns are the same again (seed ${SEED})`, async (t) => {
  const ids = new SequentialIds([0]); // no retry waits
  const server = await RecordedServer.start(t, CONFIG.replace('record: {}', 'record: { keep: 100000 }'), { ids });
  const { app } = server;
  app.models.respond(answer);
  let waiting: string | undefined;
  for (let turn = 0; turn < TURNS; turn++) {
    const model = pick(['assistant', 'assistant', 'ops', 'fast']);
    const session = random() < 0.5 ? { session_id: `session ${below(3)} of ${model}` } : {};
    const code = waiting !== undefined && random() < 0.7 ? `${pick(['approve', 'deny'])} ${waiting}` : undefined;
    const body = saying(code ?? `question ${turn}`, { model, ...session, ...(random() < 0.3 && { temperature: random() }) });
    waiting = undefined;
    if (random() < 0.1) {
      const open = await app.open(body).catch(() => undefined);
      open?.leave();
      continue;
    }
    const { text } = await app.chat({ ...body, stream: random() < 0.5 });
    waiting = /approve ([A-Z2-9]{6})/.exec(text)?.[1];
  }
  await app.started.server.stop();
  const { code, turns, failed, changes } = await server.rehearse(undefined, ['--last', String(TURNS)]);
  t.strictSame(changes.slice(0, 3), []);
  t.strictSame({ code, failed }, { code: 0, failed: 0 });
  t.ok(turns > TURNS / 2, `${turns} turns reached their agent`);
});
