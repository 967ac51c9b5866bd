import t, { type Test } from 'tap';
import { readEventStream } from '../support/server-sent-events.js';
import { saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const server = await TestServer.start(
  t,
  `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast }
`,
);

/** The number of turns of one session that may wait behind the running one. */
const QUEUE = 8;

/** What a caller gets, whichever way it asks. */
interface Got {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string | undefined;
  /** The code of the error in the body, or in a frame of the stream. */
  readonly code: unknown;
}

async function ask(text: string, stream: boolean, session: string, busy?: string): Promise<Got> {
  const {
    status,
    headers,
    text: body,
  } = await server.chat(saying(text, { session_id: session, stream }), {
    ...(busy !== undefined && { 'x-session-busy': busy }),
  });
  if (stream && status === 200) {
    const { text, errors } = readEventStream(body);
    return { status, headers, text, code: (errors[0] as { code: unknown } | undefined)?.code };
  }
  const { choices, error } = JSON.parse(body);
  return { status, headers, text: choices?.[0].message.content, code: error?.code };
}

/**
 * Waits until all that was sent so far has arrived at its session: a later request has gone the
 * whole way by then.
 */
async function arrived(): Promise<void> {
  await server.chat(saying('And so on'));
}

/**
 * The model answers this turn when the test releases it, and all others at once, each with the text
 * of the user.
 */
async function running(t: Test, text: string, stream: boolean, session: string) {
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const number = server.models.requests.length + 1;
  server.models.enqueue({ text: ['One', gate.promise, ' moment'] });
  const got = ask(text, stream, session);
  await server.models.received(number);
  return { got, finish: gate.resolve };
}

/** What was said in the session when the model was asked last. */
function said(): readonly unknown[] {
  return server.asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
}

t.test('R-080 of 20 requests to one session, one runs, 8 wait and run in order of arrival, and 11 are refused', async (t) => {
  const first = await running(t, 'turn 1', false, 'crowded');
  const waiting: Promise<Got>[] = [];
  for (let n = 2; n < 2 + QUEUE; n++) {
    waiting.push(ask(`turn ${n}`, n % 2 === 0, 'crowded'));
    await arrived();
  }
  const start = performance.now();
  const refused = await Promise.all(Array.from({ length: 11 }, (_, i) => ask(`turn ${10 + i}`, i % 2 === 0, 'crowded')));
  t.comment(`11 refusals came within ${Math.round(performance.now() - start)} ms`);
  for (const { status, code, headers } of refused) {
    t.strictSame([status, code, headers.get('retry-after')], [409, 'session_busy', '1']);
  }
  const asked = server.models.requests.length;
  first.finish();
  t.equal((await first.got).text, 'One moment');
  const order = Array.from({ length: 1 + QUEUE }, (_, i) => `turn ${i + 1}`);
  t.strictSame(
    (await Promise.all(waiting)).map(({ text }) => text),
    order.slice(1),
    'each is answered to what it said',
  );
  t.equal(server.models.requests.length, asked + QUEUE);
  t.strictSame(said(), order);
});

for (const [how, stream] of [
  ['in one body', false],
  ['as a stream', true],
] as const) {
  t.test(`R-081 reject: a turn requested ${how} is refused at once if its session is busy`, async (t) => {
    for (const other of [false, true]) {
      const session = `rejecting ${stream} ${other}`;
      const first = await running(t, 'One', other, session);
      const { status, code, headers } = await ask('Two', stream, session, 'reject');
      t.strictSame([status, code, headers.get('retry-after')], [409, 'session_busy', '1']);
      first.finish();
      t.equal((await first.got).text, 'One moment');
      t.equal((await ask('Three', stream, session, 'reject')).text, 'Three', 'where it is idle, it runs');
      t.strictSame(said(), ['One', 'Three']);
    }
  });

  t.test(`R-081 interrupt: a turn requested ${how} replaces the running turn and the waiting ones`, async (t) => {
    for (const other of [false, true]) {
      const session = `interrupting ${stream} ${other}`;
      const first = await running(t, 'One', other, session);
      const second = ask('Two', other, session);
      await arrived();
      t.equal((await ask('Three', stream, session, 'interrupt')).text, 'Three');
      t.strictSame(said(), ['Three']);
      for (const { code, headers } of [await first.got, await second]) {
        t.equal(code, 'turn_interrupted');
        t.notMatch(headers.get('x-should-retry'), 'true');
      }
      t.equal((await ask('Four', stream, session)).text, 'Four');
      t.strictSame(said(), ['Three', 'Four'], 'nothing is left of them');
    }
  });
}
