import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually, pluginContract, testContext } from '@plugboard/testing';
import http from '@plugboard/transport-http';
import t from 'tap';
import plugin from '../src/index.js';
import { startBot } from './support/start-bot.js';
import { TOKEN } from './support/telegram-server.js';
import { messageOf } from './support/updates.js';

const check = { entries: (section: string) => (section === 'agents' ? ['helper'] : []) };
const config = { token: TOKEN, agent: 'helper' };

pluginContract((name, run) => t.test(name, run), plugin, { packageDir: new URL('..', import.meta.url), config, check });

t.test('bad options are one line each', async (t) => {
  const cases: readonly (readonly [options: object, RegExp])[] = [
    [{ token: '' }, /token/],
    [{ token: 'not/a/token' }, /token: is not the token of a bot: copy it from @BotFather/],
    [{ mode: 'webhook' }, /webhookSecret: is missing; `mode: webhook` needs one of 16 to 256/],
    [{ mode: 'webhook', webhookSecret: 'short' }, /webhookSecret/],
    [{ mode: 'webhook', webhookSecret: 'a-secret with blanks' }, /webhookSecret: must have 16 to 256 letters/],
    [{ webhookUrl: 'https://agents.example.com/channels/telegram' }, /webhookUrl: has no effect while the entry polls/],
    [
      { mode: 'webhook', webhookSecret: 'a-secret-of-20-chars', webhookUrl: 'http://agents.example.com' },
      /webhookUrl: must begin with https/,
    ],
    [{ agent: 'helpr' }, /there is no agent "helpr"; did you mean "helper"/],
  ];
  for (const [options, message] of cases) {
    t.throws(() => testContext(plugin, { config: { ...config, ...options }, check }), { message }, JSON.stringify(options));
    try {
      testContext(plugin, { config: { ...config, ...options }, check });
    } catch (error) {
      t.notMatch((error as Error).message, /short|a-secret|not\/a/, 'no secret is shown');
    }
  }
});

t.test('CH-9 starts and stops without Telegram, with one line', async (t) => {
  const { logs, clock, channel, stop } = await startBot(t, { telegram: { apiRoot: 'http://127.0.0.1:9' } });
  await eventually(() => channel().status().state === 'failed' && clock.isWaiting(1_000));
  t.match(channel().status().reason, /^no answer of Telegram: ECONNREFUSED \(127\.0\.0\.1:9\)$/);
  clock.advance(1_000);
  await eventually(() => clock.isWaiting(2_000));
  t.equal(logs.filter(({ level }) => level === 'warn').filter(({ msg }) => /ECONNREFUSED/.test(String(msg))).length, 1);
  await stop();
});

t.test('stops while Telegram answers nothing', async (t) => {
  const dead = createServer(() => {});
  await once(dead.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    dead.close();
    dead.closeAllConnections();
  });
  const { clock, stop } = await startBot(t, {
    telegram: { apiRoot: `http://127.0.0.1:${(dead.address() as AddressInfo).port}` },
  });
  await eventually(() => clock.isWaiting(15_000));
  await stop();
});

t.test('without pairing and `allow`, a warning says that everyone gets answers', async (t) => {
  const { logs, channel } = await startBot(t, { telegram: { pairing: false, allow: undefined } });
  await eventually(() => channel().status().state === 'connected');
  t.equal(logs.filter(({ msg }) => /^everyone who finds the bot in Telegram gets answers/.test(String(msg))).length, 1);
});

t.test('TG-10 in webhook mode, updates arrive at /channels/<entry>', async (t) => {
  const webhookSecret = 'a-secret-of-20-chars';
  const { api, model, channel, texts, started } = await startBot(t, {
    telegram: { mode: 'webhook', webhookSecret, webhookUrl: 'https://agents.example.com/channels/telegram' },
    transports: { http: { use: http, port: 0 } },
  });
  await eventually(() => channel().status().state === 'connected');
  t.equal(channel().status().account, '@PlugBot');
  model.enqueue({ text: 'Hello.' });
  const body = JSON.stringify({ update_id: 1, ...messageOf({ text: 'Hi' }) });
  const post = async (secret: string) => {
    const headers = { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': secret };
    const { status } = await fetch(`${started.url}/channels/telegram`, { method: 'POST', headers, body });
    return status;
  };
  t.equal(await post('another-secret-of-26-chars'), 401);
  t.equal(await post(webhookSecret), 200);
  t.equal(await post(webhookSecret), 200);
  t.strictSame(await texts(1), ['Hello.']);
  t.equal(model.requests.length, 1);
  t.equal(api.of('getUpdates').length, 0);
});
