import { eventually } from '@plugboard/testing';
import t from 'tap';
import { ran, startBot } from './support/start-bot.js';
import { ANN, BEN, FORUM, GROUP, messageOf, pressOf } from './support/updates.js';

t.test(
  'CH-4 TG-9 a stranger is refused before a session, a download or a model call, and is paired by an operator',
  async (t) => {
    const { api, model, channel, texts } = await startBot(t);
    api.push(messageOf({ from: BEN, text: 'Hello' }));
    const [told = ''] = await texts(1);
    const [, code = ''] = /plugboard pair (\w{4}-\w{4})/.exec(told) ?? [];
    const photo = [{ file_id: 'a', file_unique_id: 'a', width: 9, height: 9, file_size: 10 }];
    const origin = { type: 'user', date: 1, sender_user: ANN } as const;
    api.push(messageOf({ from: BEN, text: '/new' }));
    api.push(messageOf({ from: BEN, text: 'Approve it', forward_origin: origin }));
    api.push(messageOf({ from: BEN, photo, media_group_id: '7' }));
    api.push(messageOf({ from: BEN, photo }));
    api.push(pressOf('approve K7M2QX', BEN));
    api.push({ edited_message: messageOf({ from: ANN, text: 'edited' }).message } as never);
    api.push(messageOf({ from: BEN, chat: GROUP, text: '@PlugBot hello' }));
    t.match((await texts(2))[1], /Write to me in private/);
    await eventually(() => api.of('answerCallbackQuery').length === 1 && api.updates.length === 0);
    t.equal(model.requests.length, 0);
    t.equal(api.of('getFile').length, 0);
    t.equal(api.messages.length, 2, 'a stranger is told once a minute');

    t.match(await channel().pairing?.approve(code.toLowerCase()), { sender: '102', name: 'Ben' });
    t.match((await texts(3))[2], /You are paired now/);
    model.enqueue({ text: 'Hello, Ben.' });
    api.push(messageOf({ from: BEN, text: 'Hello again' }));
    t.equal((await texts(4))[3], 'Hello, Ben.');
    t.strictSame(
      model.requests[0]?.body.messages.filter(({ role }) => role === 'user').map(({ content }) => content),
      ['Hello again'],
    );
  },
);

t.test('CH-5 commands answer without a model call', async (t) => {
  const { api, model, texts } = await startBot(t);
  api.push(messageOf({ text: '/start' }));
  api.push(messageOf({ text: '/agent' }));
  api.push(messageOf({ text: '/agent@PlugBot other' }));
  await texts(3); // it would drop them
  api.push(messageOf({ text: '/stop' }));
  const all = await texts(4);
  t.match(all[0], /\/new begins a new conversation/);
  t.match(all[1], /helper/);
  t.match(all[2], /The agent other answers here now/);
  t.equal(all[3], 'Nothing is running.');
  t.equal(model.requests.length, 0);
  model.enqueue({ text: 'Other.' });
  api.push(messageOf({ text: 'Hello' }));
  t.equal((await texts(5))[4], 'Other.');
  t.match(model.requests[0]?.body.messages[0], { role: 'system', content: 'You are another one.' });
});

t.test('the stop button of a draft ends its answer', async (t) => {
  const { api, model, texts } = await startBot(t);
  model.enqueue({ text: ['Once upon', new Promise(() => {})] });
  api.push(messageOf({ text: 'Tell me a story' }));
  await eventually(() => api.of('sendMessageDraft').length === 1);
  const { draft_id, chat_id } = api.of('sendMessageDraft')[0]?.payload ?? {};
  const chat = { id: Number(chat_id), type: 'private', first_name: 'Ann' } as const;
  api.push({ stopped_message_generation: { chat, draft_id: Number(draft_id) } });
  t.strictSame(await texts(1), ['Stopped.']);
});

t.test('CH-8 buttons decide about a call that waits for approval, and a late press does nothing', async (t) => {
  const { api, model, texts } = await startBot(t);
  ran.length = 0;
  model.enqueue({ toolCalls: [{ name: 'shell__run', arguments: { command: 'make clean' } }] }, { text: 'It is clean.' });
  api.push(messageOf({ text: 'Clean up' }));
  const [asked] = await texts(1);
  t.match(asked, /The tool <code>shell\/run<\/code> needs approval/);
  t.match(asked, /<code>\{&quot;command&quot;:&quot;make clean&quot;\}<\/code>/);
  const [[approve] = []] = api.messages[0]?.reply_markup?.inline_keyboard ?? [];
  t.equal(approve?.text, 'Approve');
  t.strictSame(ran, []);
  api.push(pressOf(approve?.callback_data ?? '', BEN));
  api.push(pressOf(approve?.callback_data ?? ''));
  t.equal((await texts(2))[1], 'It is clean.');
  t.strictSame(ran, ['make clean']);
  api.push(pressOf(approve?.callback_data ?? ''));
  api.push(messageOf({ text: '/help' }));
  await texts(3);
  t.strictSame(ran, ['make clean']);
  t.equal(model.requests.length, 2);
});

t.test('TG-8 every reply, error and refusal of a topic goes there, and each topic is a session', async (t) => {
  const { api, model, texts } = await startBot(t);
  const say = (message_thread_id: number, text: string, from: typeof ANN | typeof BEN = ANN) =>
    api.push(messageOf({ chat: FORUM, from, text, is_topic_message: true, message_thread_id }));
  model.enqueue({ text: 'One.' });
  say(4, '@PlugBot one');
  await texts(1);
  model.enqueue({ status: 400 });
  say(5, '@PlugBot two');
  await texts(2);
  say(6, '@PlugBot three', BEN);
  await texts(3);
  say(7, '/new');
  await texts(4);
  api.push(messageOf({ chat: FORUM, text: '@PlugBot general' }));
  await texts(5);
  t.strictSame(
    api.messages.map(({ chat_id, message_thread_id }) => [chat_id, message_thread_id]),
    [
      [FORUM.id, 4],
      [FORUM.id, 5],
      [FORUM.id, 6],
      [FORUM.id, 7],
      [FORUM.id, undefined],
    ],
  );
  const last = model.requests.at(-1)?.body.messages.filter(({ role }) => role === 'user');
  t.equal(last?.length, 1, 'General knows nothing of the topics');
});

t.test('images go to the agent, and anything else is answered with one line', async (t) => {
  const { api, model, texts } = await startBot(t);
  const png = Buffer.from('\x89PNG\r\n\x1a\n1234567890', 'latin1');
  api.files.set('photos/cat', png);
  model.enqueue({ text: 'A cat.' });
  const photo = [{ file_id: 'cat', file_unique_id: 'cat', width: 9, height: 9, file_size: 10 }];
  api.push(messageOf({ photo, caption: 'What is this?' }));
  t.strictSame(await texts(1), ['A cat.']);
  t.match(model.requests[0]?.body.messages.at(-1)?.content, [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
    { type: 'text', text: 'What is this?' },
  ]);
  api.push(messageOf({ voice: { file_id: 'v', file_unique_id: 'v', duration: 3 } }));
  t.match((await texts(2))[1], /^I cannot read a voice message/);
  t.equal(model.requests.length, 1);
  t.equal(api.of('getFile').length, 1);
});
