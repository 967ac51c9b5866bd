import { eventually } from '@plugboard/testing';
import t from 'tap';
import type { SlackTo } from '../../src/base/slack.js';
import { answering, methodsOf, signal, THREAD } from '../support/answering.js';

const LONG = Array.from({ length: 40 }, (_, n) => `${n} ${'word '.repeat(99)}end.`).join('\n\n');

t.test('SL-7 in a thread an answer grows as a stream, for its recipient, and ends with the rest', async (t) => {
  const entry = await answering(t);
  const stream = entry.live();
  await stream?.show('', signal);
  t.strictSame(entry.slack.calls, [], 'nothing is begun without a text');
  await stream?.show('Hello **wor', signal);
  await stream?.show('Hello **world** <!chan', signal);
  await stream?.end();
  t.equal(entry.answers()[0]?.text, 'Hello **world**', 'what may become a mention waits');
  await entry.reply('Hello **world** <!channel>!');
  t.match(entry.slack.done('chat.startStream')[0], {
    channel: 'C1',
    thread_ts: THREAD.thread,
    recipient_team_id: 'T1',
    recipient_user_id: 'U1',
  });
  t.strictSame(methodsOf(entry), ['chat.startStream', 'chat.appendStream', 'chat.stopStream']);
  t.match(entry.answers(), [{ text: 'Hello **world** <\u200b!channel>!', streaming_state: 'completed', edits: 0 }]);
  t.match(entry.answers()[0]?.metadata, { event_type: 'plugboard_reply', event_payload: { id: 'msg_1', part: 0 } });
});

t.test('SL-7 a long answer is streamed into its first message, and goes on in the next', async (t) => {
  const entry = await answering(t);
  const stream = entry.live();
  for (const end of [5_000, 11_900, 15_000, LONG.length]) await stream?.show(LONG.slice(0, end), signal);
  await entry.reply(LONG);
  const texts = entry.answers().map(({ text }) => text);
  t.equal(texts.join('\n\n'), LONG);
  for (const text of texts) t.ok(text.length <= 12_000);
  t.ok(entry.answers().every(({ edits }) => edits === 0));
});

t.test('SL-7 outside of threads an answer is one ordinary post', async (t) => {
  const entry = await answering(t);
  const to: SlackTo = { channel: 'D1', user: 'U1', team: 'T1', since: '1.0' };
  t.equal(entry.platform.live({ id: 'msg_1', chat: 'D1', to, sender: { id: 'U1' }, keep: async () => {} }), undefined);
  await entry.reply('Hello', { to });
  t.strictSame(methodsOf(entry), ['chat.postMessage']);
  t.match(entry.answers(), [{ channel: 'D1', text: 'Hello', thread_ts: undefined }]);
});

t.test('SL-7 a stream that Slack ended is repaired by one update', async (t) => {
  const entry = await answering(t);
  const stream = entry.live();
  await stream?.show('Hello', signal);
  entry.slack.script('chat.appendStream', { error: 'message_not_in_streaming_state' });
  await t.rejects(stream?.show('Hello world', signal) ?? Promise.resolve(undefined));
  await entry.reply('Hello world.');
  t.match(entry.answers(), [{ text: 'Hello world.', edits: 1 }]);
  t.equal(entry.slack.done('chat.postMessage').length, 0);
});

t.test('SL-7 a call without an answer is not repeated, and the whole is there once', async (t) => {
  for (const script of ['lost', { status: 500 }] as const) {
    const entry = await answering(t);
    const stream = entry.live();
    await stream?.show('Hello', signal);
    entry.slack.script('chat.appendStream', script);
    await t.rejects(stream?.show('Hello world', signal) ?? Promise.resolve(undefined));
    await entry.reply('Hello world.');
    t.match(entry.answers(), [{ text: 'Hello world.', edits: 1 }]);
    t.equal(entry.answers().length, 1);
  }
});

t.test('SL-7 a stream of four minutes gets nothing more, and one update with the whole', async (t) => {
  const entry = await answering(t);
  const stream = entry.live();
  await stream?.show('Hello', signal);
  entry.clock.advance(4 * 60_000);
  await stream?.show('Hello world', signal);
  t.equal(entry.slack.done('chat.appendStream').length, 0);
  await entry.reply('Hello world.');
  t.match(entry.answers(), [{ text: 'Hello world.', edits: 1 }]);
});

t.test('SL-7 what was said before a tool ran is replaced by the answer', async (t) => {
  const entry = await answering(t);
  const stream = entry.live();
  await stream?.show('I look it up.', signal);
  await stream?.show('It is', signal);
  t.equal(entry.answers()[0]?.text, 'I look it up.\n\nIt is');
  await entry.reply('It is noon.');
  t.match(entry.answers(), [{ text: 'It is noon.', edits: 1 }]);
});

t.test('SL-7 if the update is refused, the message is deleted, and the answer is posted once', async (t) => {
  const entry = await answering(t);
  await entry.live()?.show('Hello', signal);
  entry.clock.advance(4 * 60_000);
  entry.slack.script('chat.update', { error: 'edit_window_closed' });
  t.match(await entry.reply('Hello world.'), { kind: 'sent' });
  t.strictSame(methodsOf(entry).slice(-4), [
    'chat.stopStream',
    'chat.update edit_window_closed',
    'chat.delete',
    'chat.postMessage',
  ]);
  t.match(entry.answers(), [{ text: 'Hello world.', edits: 0 }]);
  t.equal(entry.answers().length, 1);
});

t.test('SL-7 a workspace without streams gets ordinary posts', async (t) => {
  const entry = await answering(t);
  entry.slack.script('chat.startStream', { error: 'missing_scope' });
  await t.rejects(entry.live()?.show('Hello', signal) ?? Promise.resolve(undefined));
  await entry.reply('Hello world.');
  t.strictSame(methodsOf(entry), ['chat.startStream missing_scope', 'chat.postMessage']);
});

t.test('a stream that its person has stopped ends the answer', async (t) => {
  const entry = await answering(t);
  entry.run();
  await eventually(() => entry.inbox.states.length === 1);
  const stream = entry.live();
  await stream?.show('Once upon', signal);
  entry.slack.script('chat.appendStream', { error: 'stopped_by_user' });
  await t.rejects(stream?.show('Once upon a time', signal) ?? Promise.resolve(undefined));
  t.match(entry.inbox.taken, [{ stops: 'msg_1', chat: 'C1', thread: THREAD.thread, sender: { id: 'U1' } }]);
});
