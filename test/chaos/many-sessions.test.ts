import type { Message } from '@plugboard/kernel';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { openStore } from '../../plugins/store-sqlite/test/open-store.js';
import { Victim } from './victim.js';

const SESSIONS = 10_000;
const INTERRUPTED = 200;

const YAML = `
transports:
  http: { port: 0 }
  chat-completions: {}
  health: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast }
  keeper: { model: fast, onRestart: keep-input }
sessions: { use: sqlite, path: ./sessions.db }
`;

/** A turn that says which one it is. */
function turn(number: number): readonly Message[] {
  return [
    { role: 'user', content: `question ${number}` },
    { role: 'assistant', content: `answer ${number} ${'x'.repeat(500)}` },
  ];
}

t.test(`R-066 a server with ${SESSIONS} sessions starts, logs the interrupted turns and becomes ready`, async (t) => {
  const folder = t.testdir({ 'plugboard.yaml': YAML });
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const { store, close } = openStore(folder);
  const id = (agent: string, n: number) => ({ project: 'default', agent, key: `session ${n}` });
  await Promise.all(
    Array.from({ length: SESSIONS }, (_, i) => store.commit(id('assistant', i), { expected: 0, messages: turn(1) })),
  );
  for (let i = 0; i < INTERRUPTED; i++) {
    const agent = i % 2 === 0 ? 'assistant' : 'keeper';
    await store.begin(id(agent, i), { turnId: `turn_${i}`, input: turn(2).slice(0, 1) });
  }
  close();

  const victim = new Victim(t, folder, { MODEL_URL: models.url });
  const begun = performance.now();
  const url = await victim.start();
  const ready = (await (await fetch(`${url}/health`)).json()) as { ready: boolean };
  const time = Math.round(performance.now() - begun);
  t.match(ready, { ready: true });
  const reported = victim.log.filter(({ event }) => event === 'turn_interrupted');
  t.equal(new Set(reported.map(({ turn_id }) => turn_id)).size, INTERRUPTED);
  t.equal(reported.length, INTERRUPTED, 'each is logged once');
  t.comment(JSON.stringify({ sessions: SESSIONS, interrupted: INTERRUPTED, millisecondsFromSpawnToReady: time }));

  const ask = (model: string, session: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, session_id: session, messages: [{ role: 'user', content: 'And now?' }] }),
    });
  t.equal((await ask('assistant', 'session 0')).status, 200);
  t.strictSame(models.requests.at(-1)?.body.messages, [...turn(1), { role: 'user', content: 'And now?' }]);
  t.equal((await ask('keeper', 'session 1')).status, 200);
  t.strictSame(
    models.requests.at(-1)?.body.messages.map(({ content }) => content),
    ['question 2', 'The previous answer was interrupted.', 'And now?'],
  );
  t.equal(await victim.stop(), 0);

  await victim.start();
  t.notOk(
    victim.log.some(({ event }) => event === 'turn_interrupted'),
    'and not again in the next life',
  );
  t.equal(await victim.stop(), 0);
});
