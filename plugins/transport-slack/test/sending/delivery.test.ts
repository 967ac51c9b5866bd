import t from 'tap';
import type { Kept } from '../../src/sending/content.js';
import { answering, signal, THREAD } from '../support/answering.js';
import { opened } from '../support/opened.js';

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

t.test('CH-1 a stream whose message could not be kept is ended all the same', async (t) => {
  const entry = await answering(t);
  const kept: Kept[] = [];
  const keep = async (value: Kept) => {
    if (value.ts !== undefined) throw new Error('the store fails');
    kept.push(value);
  };
  const stream = entry.platform.live({ id: 'msg_1', chat: 'C1', to: THREAD, sender: { id: 'U1' }, keep });
  await t.rejects(stream?.show('Hello', signal) ?? Promise.resolve(undefined), { message: 'the store fails' });
  await entry.reply('Hello world.', { kept: kept[0] });
  t.match(entry.answers(), [{ text: 'Hello world.', edits: 1 }]);
  t.equal(entry.answers().length, 1);
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
