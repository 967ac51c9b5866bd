import { eventually } from '@plugboard/testing';
import t from 'tap';
import { openPlatform, partOf } from '../support/open-platform.js';
import { flood } from '../support/telegram-server.js';
import { ANN, BEN, GROUP, messageOf, pressOf } from '../support/updates.js';

const photo = (file_id: string) => [{ file_id, file_unique_id: file_id, width: 9, height: 9, file_size: 10 }];

t.test('an album is one message, when no part has come for a second', async (t) => {
  const { server, clock, messages, ctx, run } = await openPlatform(t);
  const { stop } = run();
  server.push(messageOf({ media_group_id: '77', photo: photo('a'), caption: 'Look' }));
  await eventually(async () => (await ctx.state.list('album/')).length === 1);
  server.push(messageOf({ media_group_id: '77', photo: photo('b') }));
  await eventually(async () => (await ctx.state.list('album/')).length === 2);
  await eventually(() => server.updates.length === 0);
  t.equal(messages.length, 0);
  clock.advance(1_000);
  await eventually(() => messages.length === 1);
  t.match(messages[0], { text: 'Look', images: [{ file: 'a' }, { file: 'b' }] });
  t.equal(messages[0]?.ids.length, 4);
  await eventually(async () => (await ctx.state.list('album/')).length === 0);
  await stop();
});

t.test('what follows an album in its chat comes after it', async (t) => {
  const { server, messages, run } = await openPlatform(t);
  server.push(messageOf({ media_group_id: '77', photo: photo('a') }));
  server.push(messageOf({ from: BEN, text: 'Another chat' }));
  server.push(messageOf({ text: 'What is this?' }));
  const { stop } = run();
  await eventually(() => messages.length === 3);
  t.strictSame(
    messages.map(({ text, images = [] }) => text || images.length),
    ['Another chat', 1, 'What is this?'],
  );
  await stop();
});

t.test('an album that a crash cut is taken at the next start, and only once', async (t) => {
  const { server, clock, messages, ctx, faults, run } = await openPlatform(t);
  const first = run();
  server.push(messageOf({ media_group_id: '77', photo: photo('a') }));
  await eventually(() => server.updates.length === 0 && clock.isWaiting(1_000));
  faults.push(new Error('the disk is full'));
  clock.advance(1_000);
  await eventually(() => ctx.logs.some(({ msg }) => /an album/.test(String(msg))));
  t.equal(messages.length, 0);
  await first.stop();
  const second = run();
  await eventually(() => messages.length === 1);
  t.strictSame(await ctx.state.list('album/'), []);
  await second.stop();
});

t.test('TG-8 a group that becomes a supergroup keeps its session', async (t) => {
  const { server, messages, run } = await openPlatform(t);
  const supergroup = { id: -1_000_000_000_500, type: 'supergroup', title: 'Team' } as const;
  const first = run();
  server.push(messageOf({ chat: GROUP, text: '@PlugBot one' }));
  server.push(messageOf({ chat: GROUP, migrate_to_chat_id: supergroup.id }));
  server.push(messageOf({ chat: supergroup, migrate_from_chat_id: GROUP.id }));
  server.push(messageOf({ chat: supergroup, text: '@PlugBot two' }));
  await eventually(() => messages.length === 2);
  await first.stop();
  const second = run();
  server.push(messageOf({ chat: supergroup, text: '@PlugBot three' }));
  await eventually(() => messages.length === 3);
  t.strictSame(
    messages.map(({ chat, to }) => [chat, (to as { chat: number }).chat]),
    [
      ['-500', -500],
      ['-500', supergroup.id],
      ['-500', supergroup.id],
    ],
  );
  await second.stop();
});

t.test('CH-8 a press is acknowledged, and its row of buttons goes', async (t) => {
  const { server, run } = await openPlatform(t);
  const { stop } = run();
  server.push(pressOf('approve K7M2QX'));
  await eventually(() => server.of('editMessageReplyMarkup').length === 1);
  t.equal(server.of('answerCallbackQuery').length, 1);
  t.match(server.of('editMessageReplyMarkup')[0]?.payload.reply_markup, {
    inline_keyboard: [[{ callback_data: 'approve AAAAAA' }, { callback_data: 'deny AAAAAA' }]],
  });
  server.push(pressOf('deny all K7M2QX'));
  await eventually(() => server.of('editMessageReplyMarkup').length === 2);
  t.strictSame(server.of('editMessageReplyMarkup')[1]?.payload.reply_markup, { inline_keyboard: [] });
  await stop();
});

t.test('TG-5 a press in a chat that has to wait, or in a group, edits nothing', async (t) => {
  const { server, messages, run } = await openPlatform(t);
  const { platform, stop } = run();
  server.answer('sendMessage', flood(33));
  await platform.send(partOf('a', { chat: ANN.id }), new AbortController().signal);
  server.push(pressOf('approve K7M2QX'));
  server.push(pressOf('approve K7M2QX', ANN, GROUP));
  await eventually(() => server.of('answerCallbackQuery').length === 2);
  await stop();
  t.equal(messages.length, 2);
  t.equal(server.of('editMessageReplyMarkup').length, 0);
});

t.test('the buttons stay when a stranger presses one', async (t) => {
  const { server, messages, run, refuse } = await openPlatform(t);
  refuse();
  const { stop } = run();
  server.push(pressOf('approve K7M2QX', BEN));
  await eventually(() => server.of('answerCallbackQuery').length === 1);
  await stop();
  t.equal(messages.length, 1);
  t.equal(server.of('editMessageReplyMarkup').length, 0);
});

t.test('the stop button of a draft ends the answer it belongs to; that of an earlier draft ends none', async (t) => {
  const { server, messages, run } = await openPlatform(t);
  const { platform, stop } = run();
  const to = { chat: ANN.id, thread: 4 };
  const live = platform.live({ id: 'msg_a', chat: '101', to, sender: { id: '101' }, keep: async () => {} });
  await live.show('', new AbortController().signal);
  const [draft] = server.of('sendMessageDraft');
  t.match(draft?.payload, { chat_id: 101, message_thread_id: 4, can_stop: true, text: '' });
  const stopped = {
    chat: { id: ANN.id, type: 'private', first_name: 'Ann' },
    draft_id: Number(draft?.payload.draft_id),
  } as const;
  server.push({ stopped_message_generation: stopped });
  await eventually(() => messages.length === 1);
  t.match(messages[0], { stops: 'msg_a', chat: '101', thread: '4', sender: { id: '101' }, isPrivate: true });
  await live.end();
  server.push({ stopped_message_generation: stopped });
  await eventually(() => server.updates.length === 0);
  t.equal(messages.length, 1);
  await stop();
});
