import { createHmac } from 'node:crypto';
import { CapturedLog, eventually, ManualClock } from '@plugboard/testing';
import { HttpError, type HttpReply, type HttpRequest } from '@plugboard/transport-http';
import { httpRouteContract, testHttpRequest } from '@plugboard/transport-http/testing';
import t from 'tap';
import { HttpReceiver } from '../src/receiving/http-receiver.js';
import { loadBolt } from '../src/web-api/web-client.js';
import { type Opened, opened } from './support/opened.js';
import { commandOf, messageOf, pressOf } from './support/slack-events.js';
import { SIGNING_SECRET } from './support/slack-server.js';

const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';

interface Post {
  readonly type?: string;
  /** Seconds after the time of the entry. */
  readonly at?: number;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request as Slack signs it. */
function signed(clock: ManualClock, body: object | string, options: Post = {}): HttpRequest {
  const { type = JSON_TYPE, at = 0, secret = SIGNING_SECRET, headers = {} } = options;
  const bytes = new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
  const timestamp = Math.floor(clock.now() / 1000) + at;
  const hash = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(bytes).digest('hex');
  const own = { 'content-type': type, 'x-slack-request-timestamp': String(timestamp), 'x-slack-signature': `v0=${hash}` };
  return testHttpRequest({ method: 'POST', body: bytes, headers: { ...own, ...headers } });
}

/** Hands a body to the route. */
async function post({ http, clock }: Opened, body: object | string, options: Post = {}): Promise<HttpReply> {
  const route = http?.route('slack');
  if (!route) throw new Error('the entry has no route');
  try {
    return await route.handle(signed(clock, body, options));
  } catch (error) {
    if (error instanceof HttpError) return { status: error.status };
    throw error;
  }
}

/** An entry that receives by HTTP. */
async function receiving(t: Parameters<typeof opened>[0]): Promise<Opened> {
  const entry = await opened(t, 'http');
  entry.run();
  await eventually(() => entry.inbox.states.length === 1);
  return entry;
}

const request = signed(new ManualClock(), messageOf('D1', '1.1', 'Hi'));
httpRouteContract((name, fn) => t.test(name, fn), {
  async open() {
    const receiver = new HttpReceiver(SIGNING_SECRET, {
      clock: new ManualClock(),
      log: new CapturedLog().logger(new ManualClock()),
    });
    receiver.open({ bolt: await loadBolt(), process: async () => {} });
    return receiver.route('slack');
  },
  request,
});

t.test('SL-1 an event is answered once it is durable, without a connection to Slack', async (t) => {
  const entry = await receiving(t);
  t.match(entry.http?.route('desk'), {
    method: 'POST',
    path: '/channels/desk',
    access: 'public',
    body: 'bytes',
    startsWork: true,
  });
  const durable = Promise.withResolvers<void>();
  entry.inbox.decide = async () => {
    await durable.promise;
    return 'taken' as const;
  };
  let isAnswered = false;
  const answer = post(entry, messageOf('D1', '1.1', 'Grüße')).finally(() => {
    isAnswered = true;
  });
  await new Promise(setImmediate);
  t.notOk(isAnswered);
  durable.resolve();
  t.equal((await answer).status, 200);
  t.match(entry.inbox.taken, [{ text: 'Grüße' }]);
  t.equal(entry.slack.done('apps.connections.open').length, 0);
});

t.test('SL-2 a retry whose first delivery never came runs, any other does not', async (t) => {
  const entry = await receiving(t);
  const retry = { headers: { 'x-slack-retry-num': '1', 'x-slack-retry-reason': 'http_timeout' } };
  const event = messageOf('D1', '1.1', 'Hi');
  t.equal((await post(entry, event, retry)).status, 200);
  t.equal((await post(entry, event)).status, 200);
  t.equal((await post(entry, event, retry)).status, 200);
  t.equal(entry.inbox.taken.length, 1);
  entry.inbox.decide = () => {
    throw new Error('the store fails');
  };
  t.equal((await post(entry, messageOf('D1', '1.2', 'Hi'))).status, 503);
});

t.test('SL-4 only what Slack signed within five minutes is taken', async (t) => {
  const entry = await receiving(t);
  const event = messageOf('D1', '1.1', 'Hi');
  const refused: readonly [string, Post][] = [
    ['another secret', { secret: 'f'.repeat(32) }],
    ['an old timestamp', { at: -301 }],
    ['no signature', { headers: { 'x-slack-signature': '' } }],
    ['another version', { headers: { 'x-slack-signature': `v1=${'0'.repeat(64)}` } }],
    ['no timestamp', { headers: { 'x-slack-request-timestamp': '' } }],
    ['a timestamp that is no number', { headers: { 'x-slack-request-timestamp': 'soon' } }],
    [
      'a signature of another time',
      { headers: { 'x-slack-request-timestamp': String(Math.floor(entry.clock.now() / 1000) - 1) } },
    ],
  ];
  for (const [what, options] of refused) t.equal((await post(entry, event, options)).status, 401, what);
  t.strictSame(entry.inbox.taken, []);
  t.equal((await post(entry, event, { at: -299 })).status, 200);
  t.equal(entry.inbox.taken.length, 1);
});

t.test('SL-4 the raw bytes are signed, and what is no object is refused', async (t) => {
  const entry = await receiving(t);
  t.equal((await post(entry, `{ "type" : "event_callback",  "event":{} }`)).status, 200);
  for (const body of ['', 'null', '[]', '7', '"text"', '{', '\u0000'])
    t.equal((await post(entry, body)).status, 400, JSON.stringify(body));
  t.equal((await post(entry, 'payload={', { type: FORM })).status, 400);
  t.equal((await post(entry, 'payload=[]', { type: FORM })).status, 400);
});

t.test('SL-4 url_verification is answered with its challenge', async (t) => {
  const entry = await receiving(t);
  const reply = await post(entry, { type: 'url_verification', token: 'old', challenge: '3eZbrw1a' });
  t.strictSame(reply, { status: 200, body: { challenge: '3eZbrw1a' } });
  t.equal((await post(entry, { type: 'url_verification', challenge: 'x' }, { secret: 'f'.repeat(32) })).status, 401);
});

t.test('commands and presses come as forms', async (t) => {
  const entry = await receiving(t);
  const command = new URLSearchParams(commandOf('D1', '/agent', 'writer')).toString();
  t.equal((await post(entry, command, { type: FORM })).status, 200);
  const press = new URLSearchParams({ payload: JSON.stringify(pressOf('D1', '1.1', 'deny K7M2QX')) }).toString();
  t.equal((await post(entry, press, { type: `${FORM}; charset=utf-8` })).status, 200);
  t.match(entry.inbox.taken, [{ text: '/agent writer' }, { press: 'deny K7M2QX' }]);
});

t.test('a request before the entry runs, and after, comes again', async (t) => {
  const entry = await opened(t, 'http');
  t.equal((await post(entry, messageOf('D1', '1.1', 'Hi'))).status, 503);
  const { ended, stop } = entry.run();
  await eventually(() => entry.inbox.states.length === 1);
  stop();
  await ended;
  t.equal((await post(entry, messageOf('D1', '1.1', 'Hi'))).status, 503);
});
