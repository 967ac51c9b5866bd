import type { LiveAnswer } from '@plugboard/channel-kit';
import t, { type Test } from 'tap';
import type { SlackTo } from '../../src/base/slack.js';
import type { Kept, SlackOutgoing } from '../../src/sending/content.js';
import { type Opened, opened } from '../support/opened.js';
import type { SlackMessage } from '../support/slack-conversations.js';

const THREAD: SlackTo = { channel: 'C1', thread: '1790000000.000001', user: 'U1', team: 'T1', since: '1790000000.000001' };
const LONG = Array.from({ length: 40 }, (_, n) => `${n} ${'word '.repeat(99)}end.`).join('\n\n');
const { signal } = new AbortController();

interface Answering extends Opened {
  /** What was kept last. */
  kept(): Kept | undefined;
  live(kept?: Kept): LiveAnswer | undefined;
  /** Sends all parts of a text as the kit does. @returns the result of the last attempt. */
  reply(text: string, more?: Partial<SlackOutgoing>): Promise<unknown>;
  /** The messages of the bot in the thread. */
  answers(): readonly SlackMessage[];
}

async function answering(t: Test): Promise<Answering> {
  const entry = await opened(t);
  const { slack, platform } = entry;
  slack.conversations.ts(); // the message that is answered
  let kept: Kept | undefined;
  const base = { id: 'msg_1', chat: 'C1', to: THREAD };
  const live = (before?: Kept) =>
    platform.live({
      ...base,
      sender: { id: 'U1' },
      kept: before,
      keep: async (value) => {
        kept = value;
      },
    });
  const reply = async (text: string, more: Partial<SlackOutgoing> = {}) => {
    const parts = platform.split(text);
    let result: unknown;
    for (const [index, part] of parts.entries()) {
      const message = {
        ...base,
        text: part,
        index,
        count: parts.length,
        kind: 'reply',
        at: 0,
        mayHaveArrived: false,
        kept,
      } as const;
      result = await platform.send({ ...message, ...more }, signal);
    }
    return result;
  };
  return { ...entry, kept: () => kept, live, reply, answers: () => slack.conversations.answers };
}

/** The methods that were called, in order. */
function methodsOf({ slack }: Opened): readonly string[] {
  return slack.calls
    .map(({ method, outcome }) => (outcome === 'ok' ? method : `${method} ${outcome}`))
    .filter((method) => method !== 'auth.test');
}

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

t.test('CH-1 a stream that a crash cut is repaired by the next process', async (t) => {
  const entry = await answering(t);
  await entry.live()?.show('Hello', signal);
  const kept = entry.kept();
  t.ok(kept?.ts);
  // The next process knows no stream, only what was kept.
  const next = await opened(t, 'socket', { apiUrl: entry.slack.apiUrl });
  const message = { id: 'msg_1', chat: 'C1', to: THREAD, index: 0, count: 1, kind: 'reply', at: 0 } as const;
  t.equal(next.platform.live({ ...message, sender: { id: 'U1' }, kept, keep: async () => {} }), undefined, 'it is not continued');
  const send = (mayHaveArrived: boolean) =>
    next.platform.send({ ...message, text: 'Hello world.', mayHaveArrived, kept }, signal);
  t.match(await send(true), { kind: 'sent' });
  t.match(entry.answers(), [{ text: 'Hello world.', edits: 1, streaming_state: 'completed' }]);
  t.match(await send(true), { kind: 'sent' }, 'again, because the process died before it was noted');
  t.match(entry.answers(), [{ edits: 1 }]);
  t.equal(entry.answers().length, 1);
});

t.test('CH-1 a stream whose beginning was not acknowledged is found, and repaired', async (t) => {
  const entry = await answering(t);
  entry.slack.conversations.call('chat.postMessage', {
    channel: 'C1',
    thread_ts: String(THREAD.thread),
    text: 'Earlier',
    metadata: '{"event_type":"plugboard_reply","event_payload":{"id":"msg_0","part":0}}',
  });
  entry.slack.script('chat.startStream', 'lost');
  await t.rejects(entry.live()?.show('Hello', signal) ?? Promise.resolve(undefined));
  t.strictSame(entry.kept(), { startedAt: entry.clock.now() });
  await entry.reply('Hello world.');
  t.match(
    entry.answers().map(({ text }) => text),
    ['Earlier', 'Hello world.'],
  );
});

t.test('CH-1 the stream of the next answer is not taken for one that was cut', async (t) => {
  const entry = await answering(t);
  const next = entry.platform.live({ id: 'msg_2', chat: 'C1', to: THREAD, sender: { id: 'U1' }, keep: async () => {} });
  await next?.show('The next', signal);
  await entry.reply('Hello world.', { kept: { startedAt: 0 } });
  t.match(
    entry.answers().map(({ text }) => text),
    ['The next', 'Hello world.'],
  );
});

t.test('CH-1 a post that may have arrived is looked for by its metadata, and not posted twice', async (t) => {
  for (const to of [THREAD, { channel: 'D1', user: 'U1', team: 'T1', since: '1790000000.000001' }]) {
    const entry = await answering(t);
    entry.slack.script('chat.postMessage', 'lost');
    t.match(await entry.reply('Hello', { to }), { kind: 'later' });
    t.equal(entry.answers().length, 1, 'it did arrive');
    for (let n = 0; n < 250; n++)
      entry.slack.conversations.call('chat.postMessage', {
        channel: to.channel,
        text: 'more',
        ...('thread' in to ? { thread_ts: String(to.thread) } : {}),
      });
    t.match(await entry.reply('Hello', { to, mayHaveArrived: true }), { kind: 'sent' });
    t.equal(entry.slack.done('chat.postMessage').length, 0);
    t.match(await entry.reply('Hello', { to, id: 'msg_2', mayHaveArrived: true }), { kind: 'sent' }, 'another one has not');
    t.equal(entry.slack.done('chat.postMessage').length, 1);
  }
});

t.test('CH-1 where Slack does not show messages, a reply comes at least once', async (t) => {
  const entry = await answering(t);
  for (let n = 0; n < 2; n++) {
    entry.slack.script('conversations.replies', { error: 'missing_scope' });
    t.match(await entry.reply('Hello', { mayHaveArrived: true }), { kind: 'sent' });
  }
  t.equal(entry.answers().length, 2);
  t.equal(entry.ctx.logs.filter(({ level }) => level === 'warn').length, 1, 'it is said once');
});

t.test('a wait is kept to the second, refusals are final, and a token error is not', async (t) => {
  const entry = await answering(t);
  entry.slack.script(
    'chat.postMessage',
    { status: 429, retryAfter: 33 },
    { status: 503 },
    { error: 'internal_error' },
    { error: 'token_revoked' },
    { error: 'channel_not_found' },
  );
  t.match(await entry.reply('Hi'), { kind: 'later', after: 33_000, reason: 'Slack asks to wait 33 s' });
  t.strictSame(await entry.reply('Hi'), { kind: 'later', reason: 'Slack answers with status 503' });
  t.strictSame(await entry.reply('Hi'), { kind: 'later', reason: 'Slack refuses it (internal_error)' });
  t.strictSame(await entry.reply('Hi'), { kind: 'later', reason: 'Slack refuses it (token_revoked)' });
  t.strictSame(await entry.reply('Hi'), { kind: 'never', reason: 'Slack refuses it (channel_not_found)' });
  const stream = entry.live();
  entry.slack.script('chat.startStream', { status: 429, retryAfter: 9 });
  t.equal(await stream?.show('Hello', signal), 9_000);
  entry.slack.script('chat.appendStream', { status: 429, retryAfter: 149 });
  t.equal(await stream?.show('Hello', signal), undefined);
  t.equal(await stream?.show('Hello world', signal), 149_000);
  await entry.reply('Hello world.');
  t.match(entry.answers(), [{ text: 'Hello world.', edits: 0 }]);
});

t.test('CH-8 buttons are below the text, in a stream and in a post', async (t) => {
  const entry = await answering(t);
  const buttons = [
    { label: 'Approve', line: 'approve K7M2QX' },
    { label: 'Deny', line: 'deny K7M2QX' },
  ];
  await entry.reply('May I?', { buttons });
  await entry.live()?.show('May I', signal);
  await entry.reply('May I?', { id: 'msg_1', buttons });
  const elements = [
    { type: 'button', action_id: 'plugboard_line_0', text: { text: 'Approve' }, value: 'approve K7M2QX' },
    { type: 'button', action_id: 'plugboard_line_1', text: { text: 'Deny' }, value: 'deny K7M2QX' },
  ];
  t.match(entry.answers()[0]?.blocks, [
    { type: 'markdown', text: 'May I?' },
    { type: 'actions', elements },
  ]);
  t.match(entry.answers()[1], { text: 'May I?', blocks: [{ type: 'actions', elements }] });
});

t.test('images are loaded from Slack with the token, and from nowhere else', async (t) => {
  const { slack, platform } = await answering(t);
  const data = Buffer.from('89504e470d0a1a0a', 'hex');
  const file = slack.file('a.png', 'image/png', data);
  t.strictSame(await platform.loadImage({ url: String(file.url_private), size: data.length }, signal), data);
  t.equal(await platform.loadImage({ url: `${slack.url}/files/F99`, size: 1 }, signal), undefined, 'its login page is no image');
  const before = slack.calls.length;
  for (const url of ['https://slack.com.example.org/a', 'http://files.slack.com/a', 'file:///etc/passwd', 'not an address']) {
    t.equal(await platform.loadImage({ url, size: 1 }, signal), undefined, url);
  }
  t.equal(slack.calls.length, before);
  const huge = slack.file('b.png', 'image/png', new Uint8Array(10 * 1024 * 1024 + 1));
  t.equal(await platform.loadImage({ url: String(huge.url_private), size: 1 }, signal), undefined);
});
