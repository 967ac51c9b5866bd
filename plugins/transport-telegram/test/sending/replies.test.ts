import t from 'tap';
import { openPlatform, partOf } from '../support/open-platform.js';
import { flood, type ScriptedAnswer } from '../support/telegram-server.js';

const { signal } = new AbortController();
const refused = (code: number, description: string, parameters?: Record<string, number>): ScriptedAnswer => ({
  code,
  description,
  ...(parameters && { parameters }),
});

t.test('sends a part as a message, in its topic, without previews of links', async (t) => {
  const { server, run } = await openPlatform(t);
  const { platform, stop } = run();
  const [text = ''] = platform.split('**Hello** <you>');
  t.strictSame(await platform.send(partOf(text, { chat: -5, thread: 9 }, { replyTo: '31' }), signal), { kind: 'sent' });
  t.match(server.messages[0], {
    chat_id: -5,
    message_thread_id: 9,
    text: '<b>Hello</b> &lt;you&gt;',
    parse_mode: 'HTML',
    link_preview_options: { is_disabled: true },
    reply_parameters: { message_id: 31, allow_sending_without_reply: true },
  });
  await platform.send(partOf('b', { chat: 5 }, { replyTo: '31' }), signal);
  await platform.send(partOf('c', { chat: -5 }, { replyTo: '31', index: 1, count: 2 }), signal);
  t.strictSame(
    server.messages.slice(1).map((message) => [message.message_thread_id, message.reply_parameters]),
    [
      [undefined, undefined],
      [undefined, undefined],
    ],
    'no reply in a private chat, nor of a later part',
  );
  await stop();
});

t.test('CH-8 a request for approval has buttons, one row for each call', async (t) => {
  const { server, run } = await openPlatform(t);
  const { platform, stop } = run();
  const buttons = ['approve A', 'deny A', 'approve B', 'deny B'].map((line) => ({ label: line, line }));
  await platform.send(partOf('May I?', { chat: 5 }, { buttons }), signal);
  t.strictSame(
    server.messages[0]?.reply_markup?.inline_keyboard.map((row) => row.map(({ callback_data }) => callback_data)),
    [
      ['approve A', 'deny A'],
      ['approve B', 'deny B'],
    ],
  );
  await stop();
});

t.test('TG-6 refused formatting costs itself, not the answer', async (t) => {
  const { server, run } = await openPlatform(t);
  const { platform, stop } = run();
  server.answer('sendMessage', refused(400, "Bad Request: can't parse entities: unsupported start tag at byte offset 3"));
  t.strictSame(await platform.send(partOf('<b>a &lt; b</b>', { chat: 5 }), signal), { kind: 'sent' });
  t.strictSame(
    server.messages.map(({ text, parse_mode }) => [text, parse_mode]),
    [['a < b', undefined]],
  );
  await stop();
});

t.test('TG-6 a flood error is not a formatting error', async (t) => {
  const { server, run } = await openPlatform(t);
  const { platform, stop } = run();
  for (const seconds of [9, 33, 149]) {
    server.answer('sendMessage', flood(seconds));
    t.match(await platform.send(partOf('<b>a</b>', { chat: 5 }), signal), { kind: 'later', after: seconds * 1_000 });
  }
  t.equal(server.of('sendMessage').length, 3, 'one call each: no second one without formatting');
  t.equal(server.messages.length, 0);
  await stop();
});

t.test('what Telegram does not take for now is tried later, other refusals never', async (t) => {
  const { server, run, ctx } = await openPlatform(t);
  const { platform, stop } = run();
  const outcomes: readonly (readonly [ScriptedAnswer, kind: string])[] = [
    [refused(500, 'Internal Server Error'), 'later'],
    ['html', 'later'],
    ['closed', 'later'],
    ['done-and-closed', 'later'],
    [refused(401, 'Unauthorized'), 'later'],
    [refused(403, 'Forbidden: bot was blocked by the user'), 'never'],
    [refused(400, 'Bad Request: chat not found'), 'never'],
    [refused(400, 'Bad Request: message thread not found'), 'never'],
  ];
  for (const [answer, kind] of outcomes) {
    server.answer('sendMessage', answer);
    const result = await platform.send(partOf('a', { chat: 5 }), signal);
    t.equal(result.kind, kind, JSON.stringify(answer));
    t.notMatch(JSON.stringify([result, ctx.logs]), /scripted_token/);
  }
  await stop();
});

t.test('TG-8 a reply to a group that has become a supergroup goes there', async (t) => {
  const { server, run, ctx } = await openPlatform(t);
  const { platform, stop } = run();
  const to = -1_000_000_000_500;
  const upgraded = 'Bad Request: group chat was upgraded to a supergroup chat';
  server.answer('sendMessage', refused(400, upgraded, { migrate_to_chat_id: to }));
  t.strictSame(await platform.send(partOf('a', { chat: -500 }), signal), { kind: 'sent' });
  t.strictSame(
    server.messages.map(({ chat_id }) => chat_id),
    [to],
  );
  t.equal(await ctx.state.get(`moved/${to}`), -500);
  await stop();
});

t.test('an image is loaded up to 10 MB', async (t) => {
  const { server, run } = await openPlatform(t);
  const { platform, stop } = run();
  server.files.set('photos/a', Buffer.from('\x89PNG\r\n', 'latin1'));
  server.files.set('photos/huge', Buffer.alloc(10_000_001));
  t.strictSame(await platform.loadImage({ file: 'a' }, signal), Buffer.from('\x89PNG\r\n', 'latin1'));
  t.equal(await platform.loadImage({ file: 'huge' }, signal), undefined);
  t.equal(await platform.loadImage({ file: 'gone' }, signal), undefined);
  server.answer('file', refused(500, 'Internal Server Error'));
  await t.rejects(platform.loadImage({ file: 'a' }, signal), /Telegram answers 500/);
  await stop();
});
