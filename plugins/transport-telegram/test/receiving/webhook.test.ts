import { eventually } from '@plugboard/testing';
import type { HttpError, HttpRequest } from '@plugboard/transport-http';
import { testHttpRequest } from '@plugboard/transport-http/testing';
import type { Update } from 'grammy/types';
import t from 'tap';
import { openPlatform } from '../support/open-platform.js';
import { messageOf } from '../support/updates.js';

const SECRET = 'a-secret-of-20-chars';
const URL = 'https://agents.example.com/channels/telegram';
const WEBHOOK = { mode: 'webhook', webhookSecret: SECRET, webhookUrl: URL } as const;

function requestOf(body: object, secret: string | undefined = SECRET): HttpRequest {
  return testHttpRequest({ headers: { 'x-telegram-bot-api-secret-token': secret }, body });
}

t.test('TG-10 the webhook is set, and nothing polls', async (t) => {
  const { server, events, run } = await openPlatform(t, WEBHOOK);
  const { stop } = run();
  await eventually(() => events.length === 1);
  t.strictSame(events, ['connected @PlugBot']);
  t.strictSame(server.webhook, { url: URL, secret: SECRET });
  const [set] = server.of('setWebhook');
  t.strictSame(set?.payload.allowed_updates, ['message', 'callback_query', 'stopped_message_generation']);
  t.notOk('drop_pending_updates' in (set?.payload ?? {}), 'updates that wait are not dropped');
  t.equal(server.of('getUpdates').length, 0);
  await stop();
});

t.test('TG-10 an update is taken once, and only with the secret', async (t) => {
  const { messages, events, run } = await openPlatform(t, WEBHOOK);
  const { platform, stop } = run();
  const statusOf = async (request: HttpRequest) => {
    try {
      return (await platform.route.handle(request)).status;
    } catch (error) {
      return (error as HttpError).status;
    }
  };
  const post = (body: object, secret?: string) => statusOf(requestOf(body, secret));
  t.equal(await post({ update_id: 1, ...messageOf({ text: 'a' }) }), 503, 'not before the bot is known');
  await eventually(() => events.length === 1);
  const update: Update = { update_id: 1, ...messageOf({ text: 'Hello' }) };
  for (const secret of ['', 'a-secret-of-20-charS', `${SECRET}x`]) t.equal(await post(update, secret), 401);
  t.equal(await statusOf(testHttpRequest({ body: update })), 401);
  t.equal(await post({ hello: 1 }), 400);
  t.equal(messages.length, 0);
  t.equal(await post(update), 200);
  t.equal(await post(update), 200);
  t.equal(messages.length, 1);
  await stop();
  t.equal(await post(update), 503, 'nor after the stop');
});

t.test('an update that is not durable is not confirmed', async (t) => {
  const { messages, events, faults, run } = await openPlatform(t, WEBHOOK);
  const { platform, stop } = run();
  await eventually(() => events.length === 1);
  faults.push(new Error('the disk is full'));
  const update = { update_id: 1, ...messageOf({ text: 'Hello' }) };
  await t.rejects(async () => platform.route.handle(requestOf(update)), { status: 503, code: 'unavailable' });
  await platform.route.handle(requestOf(update));
  t.equal(messages.length, 1);
  await stop();
});

t.test('a missing or foreign webhook is one line with the cure', async (t) => {
  const { server, clock, events, run } = await openPlatform(t, { mode: 'webhook', webhookSecret: SECRET });
  const first = run();
  await eventually(() => events.length === 1);
  t.equal(events[0], 'no webhook is set for this bot; set `webhookUrl`, or call setWebhook');
  server.webhook = { url: URL };
  await eventually(() => clock.isWaiting(60_000));
  clock.advance(60_000);
  await eventually(() => events.length === 2);
  await first.stop();

  const other = await openPlatform(t, WEBHOOK);
  const second = other.run();
  await eventually(() => other.events.length === 1 && other.clock.isWaiting(60_000));
  other.server.webhook = { url: 'https://other.example/hook' };
  other.clock.advance(60_000);
  await eventually(() => other.events.length === 2);
  t.match(other.events[1], /^another webhook was set for this bot/);
  t.equal(other.server.of('setWebhook').length, 1, 'it is not taken back');
  await second.stop();
});
