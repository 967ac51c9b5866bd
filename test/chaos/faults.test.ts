import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type SessionStore, SessionStores } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { TestServer, TRANSPORTS } from '../support/test-server.js';
import { type Attempt, check } from './checker.js';
import { type ClientOutcome, type Send, send } from './client.js';
import { FAULTS, type Fault, faults } from './faulty-store.js';
import { answerTo, modelOf, textOfTurn } from './known-turns.js';

/** The time limit of a turn, and how long the server then waits for its end. */
const TIMEOUT = 60_000;
const SETTLE = 5_000;
/** Real milliseconds after which an answer that is due does not come any more. */
const PATIENCE = 5_000;

const clock = new ManualClock();
const FAULTY = new URL('./faulty-store.ts', import.meta.url);
const server = await TestServer.start(
  t,
  `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock], timeout: 1m }
sessions: { use: ./faulty.mjs, path: ${JSON.stringify(join(t.testdir(), 'sessions.db'))} }
`,
  { clock, files: { 'faulty.mjs': `export { default } from ${JSON.stringify(FAULTY.href)};` } },
);
server.models.respond(({ body }) => modelOf(body, () => Promise.resolve()));
const store: SessionStore = server.started.server.extensions(SessionStores).one();

type Turn = Omit<Send, 'url' | 'agent' | 'stream'> & { readonly stream?: boolean };
const run = (turn: Turn) => send({ stream: false, ...turn, url: server.url, agent: 'assistant' });

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await setImmediate();
}

/**
 * The answer to a turn whose store call of that number fails; undefined where none comes although
 * its time is over.
 */
async function answerWith(at: number, fault: Fault, turn: Turn): Promise<ClientOutcome | undefined> {
  faults.arm(at, fault);
  const patience = new AbortController();
  const answer = run({ ...turn, signal: patience.signal });
  const first = await Promise.race([answer, faults.struck]);
  if (typeof first === 'object') return first;
  for (let passed = 0; passed < TIMEOUT + SETTLE; passed += SETTLE) {
    clock.advance(SETTLE);
    await settled();
  }
  const timer = setTimeout(() => patience.abort(), PATIENCE);
  const seen = await answer;
  clearTimeout(timer);
  return seen.saw === 'nothing' ? undefined : seen;
}

/**
 * Whether nothing can be kept of a turn that was refused: where the store does what it fails at,
 * nobody can know.
 */
const leavesNothing = (fault: Fault) => fault === 'refused' || fault === 'stuck';

/** After so long a session is in memory no more. */
const HIBERNATED = 20 * 60_000;

const WAYS: Readonly<Record<string, { readonly isKeyed: boolean; readonly inSession: boolean; readonly rests?: boolean }>> = {
  'of a session': { isKeyed: false, inSession: true },
  'of an evicted session': { isKeyed: false, inSession: true, rests: true },
  'of a session, with an idempotency key': { isKeyed: true, inSession: true },
  'without a session, with an idempotency key': { isKeyed: true, inSession: false },
};
for (const [way, { isKeyed, inSession, rests }] of Object.entries(WAYS)) {
  for (const stream of [false, true]) {
    for (const fault of FAULTS) {
      t.test(`R-064 each store call of a turn ${way} is ${fault}, one after the other (stream: ${stream})`, async (t) => {
        for (let at = 1, hasStruck = true; hasStruck; at++) {
          const name = `${way} ${stream} ${fault} ${at}`;
          const session = inSession ? name : undefined;
          const attempt = (number: number, kind: 'plain' | 'tool'): Attempt => {
            return { session: name, who: 'ann', text: textOfTurn(`ann (${name})`, number, kind), saw: 'end' };
          };
          const [before, tried, after] = [attempt(1, 'plain'), attempt(2, 'tool'), attempt(3, 'plain')];
          t.match(await run({ session, text: before.text }), { saw: 'end' });
          if (rests) clock.advance(HIBERNATED);

          const turn = { session, text: tried.text, stream, key: isKeyed ? name : undefined };
          const seen = await answerWith(at, fault, turn);
          const call = `call ${at}, ${faults.calls[at - 1] ?? 'which there is not'}`;
          hasStruck = faults.calls.length >= at;
          faults.disarm();
          faults.release();
          await settled();

          if (!seen) t.fail(`${call}: no answer`);
          else if (seen.saw === 'end') t.ok(seen.text.endsWith(answerTo(tried.text)), `${call}: the right answer`);
          else t.ok(hasStruck && seen.saw === 'refusal' && (stream || seen.status === 502), `${call}: a refusal`);
          tried.saw = seen?.saw === 'refusal' && !leavesNothing(fault) ? 'nothing' : (seen?.saw ?? 'nothing');

          if (isKeyed) {
            const again = await run(turn);
            if (seen?.saw === 'end') t.match(again, { saw: 'end', text: seen.text }, `${call}: the same again`);
            else if (again.saw === 'end') tried.saw = 'end';
            else t.match(again, { saw: 'refusal', status: /^(409|502)$/ }, `${call}: a refusal again`);
          }
          if (!session) continue;
          t.match(await run({ session, text: after.text }), { saw: 'end' }, `${call}: the session takes the next turn`);
          const kept = await store.load({ project: 'default', agent: 'assistant', key: session });
          t.match(
            check([before, tried, after], new Map([[session, kept]])),
            { lost: [], duplicated: [], half: [], disordered: [], unasked: [], invalid: [] },
            call,
          );
        }
        t.comment(faults.calls.join(' '));
      });
    }
  }
}
