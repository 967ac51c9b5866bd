import { eventually } from '@plugboard/testing';
import t from 'tap';
import { startBot } from './support/start-bot.js';
import { flood } from './support/telegram-server.js';
import { ANN, GROUP, messageOf } from './support/updates.js';

t.test('TG-4 a private chat sees the answer grow as one draft, then gets a real message', async (t) => {
  const { api, model, clock, texts } = await startBot(t);
  const [more, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  model.enqueue({ text: ['**Hello**', more.promise, ' and', end.promise, ' goodbye.'] });
  api.push(messageOf({ text: 'Hi' }));
  const drafts = () => api.of('sendMessageDraft').map(({ payload }) => payload);
  await eventually(() => drafts().length === 1 && clock.isWaiting(1_000));
  t.match(drafts()[0], { chat_id: ANN.id, text: '', can_stop: true });
  clock.advance(1_000);
  await eventually(() => drafts().at(-1)?.text === '<b>Hello</b>' && clock.isWaiting(1_000));
  clock.advance(1_000);
  await eventually(() => clock.isWaiting(19_000));
  const shown = drafts().length;
  clock.advance(18_999);
  t.equal(drafts().length, shown, 'a text that does not change is not sent again at once');
  clock.advance(1);
  await eventually(() => drafts().length === shown + 1 && clock.isWaiting(1_000));
  t.equal(drafts().at(-1)?.text, '<b>Hello</b>', 'after 20 s it is renewed');
  more.resolve();
  clock.advance(1_000);
  await eventually(() => drafts().at(-1)?.text === '<b>Hello</b> and');
  t.equal(new Set(drafts().map(({ draft_id }) => draft_id)).size, 1, 'one number');
  end.resolve();
  t.strictSame(await texts(1), ['<b>Hello</b> and goodbye.']);
  t.equal(
    api.calls.findLastIndex(({ method }) => method === 'sendMessageDraft') <
      api.calls.findIndex(({ method }) => method === 'sendMessage'),
    true,
  );
});

t.test('TG-4 a group sees that the bot types, and no draft', async (t) => {
  const { api, model, clock, texts } = await startBot(t);
  const end = Promise.withResolvers<void>();
  model.enqueue({ text: ['Hello', end.promise, ' all.'] });
  api.push(messageOf({ chat: GROUP, text: '@PlugBot hi' }));
  await eventually(() => api.of('sendChatAction').length === 1 && clock.isWaiting(4_500));
  clock.advance(4_500);
  await eventually(() => api.of('sendChatAction').length === 2);
  t.match(api.of('sendChatAction')[1]?.payload, { chat_id: GROUP.id, action: 'typing' });
  end.resolve();
  t.strictSame(await texts(1), ['Hello all.']);
  t.equal(api.of('sendMessageDraft').length, 0);
});

t.test('an answer arrives where Telegram knows no drafts', async (t) => {
  const { api, model, texts } = await startBot(t);
  api.answer('sendMessageDraft', { code: 404, description: 'Not Found' });
  model.enqueue({ text: 'Hello.' });
  api.push(messageOf({ text: 'Hi' }));
  t.strictSame(await texts(1), ['Hello.']);
});

for (const seconds of [9, 33, 149]) {
  t.test(`TG-5 retry_after of ${seconds} s is kept to the second, for drafts and messages`, async (t) => {
    const { api, model, clock, channel, texts } = await startBot(t);
    const calls = () => api.calls.filter(({ method }) => method.startsWith('send')).length;
    const end = Promise.withResolvers<void>();
    api.answer('sendMessageDraft', flood(seconds));
    api.answer('sendMessage', flood(seconds));
    model.enqueue({ text: ['Hello', end.promise, ' you.'] });
    api.push(messageOf({ text: 'Hi' }));
    await eventually(() => calls() === 1 && clock.isWaiting(1_000));
    clock.advance(1_000); // the least time between two drafts is a part of the wait
    await eventually(() => clock.isWaiting(seconds * 1_000 - 1_000));
    end.resolve();
    await eventually(() => channel().status().unsent === 1 && clock.isWaiting(seconds * 1_000 - 1_000));
    clock.advance(seconds * 1_000 - 1_001);
    t.equal(calls(), 1, 'nothing is sent before');
    clock.advance(1);
    await eventually(() => calls() === 2 && clock.isWaiting(seconds * 1_000));
    clock.advance(seconds * 1_000 - 1);
    t.equal(calls(), 2);
    t.equal(api.messages.length, 0);
    clock.advance(1);
    t.strictSame(await texts(1), ['Hello you.'], 'the whole answer arrives once, as it was formatted');
    t.equal(api.of('sendMessage').length, 2);
  });
}
