import t from 'tap';
import type { Account } from '../../src/base/slack.js';
import type { Arrival } from '../../src/receiving/arrival.js';
import { arrivalOf } from '../../src/receiving/arrivals.js';
import { commandOf, eventOf, mentionOf, messageOf, pressOf } from '../support/slack-events.js';

const account: Account = { team: 'T1', teamName: 'Work', user: 'UBOT', name: 'helper' };

function arrival(body: unknown, answerOf: (ts: string) => string | undefined = () => undefined): Arrival | undefined {
  return arrivalOf(body, account, answerOf);
}

/** What is for the agent of a text in a channel, and in a direct message. */
const textOf = (text: string) => arrival(messageOf('C1', '1.1', text))?.incoming.text;

t.test('SL-3 a message and its mention have a name in common, and each delivery its own', async (t) => {
  const message = arrival(messageOf('C1', '1790000000.000100', '<@UBOT> Hi'))?.incoming;
  const mention = arrival(mentionOf('C1', '1790000000.000100', '<@UBOT> Hi'))?.incoming;
  t.equal(message?.ids.length, 2);
  t.equal(message?.ids[1], 'T1/C1/1790000000.000100');
  t.equal(mention?.ids[1], message?.ids[1]);
  t.not(mention?.ids[0], message?.ids[0]);
  t.ok(message?.isAddressed && mention?.isAddressed);
  t.equal(message?.text, 'Hi');
});

t.test('SL-6 a mention begins a thread, a thread is a session, and a direct message is none', async (t) => {
  const threadOf = (channel: string, more: object) => {
    const { incoming } = arrival(messageOf(channel, '1.5', '<@UBOT> Hi', { ...more })) ?? {};
    return [incoming?.thread, incoming?.to.thread, incoming?.isPrivate];
  };
  t.strictSame(threadOf('C1', {}), ['1.5', '1.5', false], 'a mention begins the thread that it is answered in');
  t.strictSame(threadOf('C1', { thread_ts: '1.1' }), ['1.1', '1.1', false]);
  t.strictSame(threadOf('C1', { thread_ts: '1.5' }), ['1.5', '1.5', false], 'thread_ts equal to ts is no thread');
  t.strictSame(threadOf('D1', {}), [undefined, undefined, true]);
  t.strictSame(threadOf('D1', { thread_ts: '1.5' }), [undefined, undefined, true]);
  t.strictSame(threadOf('D1', { thread_ts: '1.1' }), ['1.1', '1.1', true]);
  t.strictSame(threadOf('G1', { channel_type: 'mpim' }), ['1.5', '1.5', false], 'a direct message of several people is a group');
});

t.test('SL-8 own messages, other bots, changes and deletions start nothing', async (t) => {
  for (const [what, more] of Object.entries({
    'an own message': { user: 'UBOT' },
    'another bot': { bot_id: 'B2' },
    'another bot by its profile': { bot_profile: { id: 'B2' } },
    'a message of an integration': { subtype: 'bot_message', bot_id: 'B2', user: undefined },
    'the bot of the platform': { user: 'USLACKBOT' },
    'a change': { subtype: 'message_changed', hidden: true, message: { text: '<@UBOT> Hi' } },
    'a deletion': { subtype: 'message_deleted', hidden: true, deleted_ts: '1.0' },
    'a message that was edited before it came': { edited: { user: 'U1', ts: '1.6' } },
    'a person who joined': { subtype: 'channel_join' },
    'a message without a sender': { user: undefined },
    'a message with a sender that is no text': { user: { id: 'U1' } },
    'a message without a channel': { channel: undefined },
  })) {
    t.equal(arrival(messageOf('C1', '1.5', '<@UBOT> Hi', more)), undefined, what);
    t.equal(arrival(mentionOf('C1', '1.5', '<@UBOT> Hi', more)), undefined, `${what}, as a mention`);
  }
  for (const body of [undefined, null, 7, 'text', [], {}, { event: null }, { event: [] }, { event: 'x' }, { command: {} }]) {
    t.equal(arrival(body), undefined, JSON.stringify(body));
  }
  t.equal(arrival(eventOf({ type: 'reaction_added', user: 'U1', item: { channel: 'C1' } })), undefined, 'an unknown event');
  const elsewhere = { team_id: 'T2', authorizations: [{ team_id: 'T2', user_id: 'UBOT2', is_enterprise_install: false }] };
  t.equal(arrival({ ...messageOf('C1', '1.5', '<@UBOT> Hi'), ...elsewhere }), undefined, 'another workspace of the app');
});

t.test('in a thread a message without a mention follows, but not one for somebody else', async (t) => {
  const follows = (text: string, more: object = { thread_ts: '1.1' }) => {
    const { follows, incoming } = arrival(messageOf('C1', '1.5', text, { ...more })) ?? {};
    return [follows, incoming?.isAddressed];
  };
  t.strictSame(follows('And now?'), [true, false]);
  t.strictSame(follows('<@U2> what do you think?'), [false, false]);
  t.strictSame(follows(' <@U2|ben> and <@UBOT>?'), [false, true], 'who is mentioned is asked');
  t.strictSame(follows('And now?', {}), [false, false], 'outside of threads');
  t.strictSame(follows('What does <@U2> say?'), [true, false]);
});

t.test('a thread that another person began names that person', async (t) => {
  const begunBy = (more: object) => arrival(messageOf('C1', '1.5', '<@UBOT> Hi', { thread_ts: '1.1', ...more }))?.begunBy;
  t.equal(begunBy({ parent_user_id: 'U2' }), 'U2');
  t.equal(begunBy({ parent_user_id: 'U1' }), undefined);
  t.equal(begunBy({ parent_user_id: 'UBOT' }), undefined);
  t.equal(begunBy({}), undefined);
});

t.test('the text is what a person reads', async (t) => {
  t.equal(
    textOf('<@UBOT>: tell <@U2> and <@U3|cem> in <#C2|news> &lt;now&gt; &amp; here'),
    'tell @U2 and @cem in #news <now> & here',
  );
  t.equal(
    textOf('<@UBOT|helper>, see <https://a.example/x?y=1&amp;z> and <https://b.example|the page>'),
    'see https://a.example/x?y=1&z and [the page](https://b.example)',
  );
  t.equal(
    textOf('write to <mailto:a@b.example|a@b.example>, <!here>, <!subteam^S1|@desk>, <!date^1^{date}|today>'),
    'write to a@b.example, @here, @desk, today',
  );
  t.equal(textOf('ask <@UBOT> why'), 'ask @helper why');
  t.equal(textOf('&amp;lt; <'), '&lt; <', 'nothing is decoded twice');
});

t.test('CH-5 a command is text, after a mention, or with ! for the slash', async (t) => {
  t.equal(textOf('<@UBOT> /new'), '/new');
  t.equal(textOf('!new'), '/new');
  t.equal(textOf('<@UBOT> !agent writer'), '/agent writer');
  t.equal(textOf('!newer'), '!newer');
  t.equal(textOf('wow!stop'), 'wow!stop');
});

t.test('CH-5 a slash command is a command, or says one, or says a text', async (t) => {
  const said = (command: string, text = '') => arrival(commandOf('D1', command, text))?.incoming.text;
  t.equal(said('/new'), '/new');
  t.equal(said('/agent', 'writer'), '/agent writer');
  t.equal(said('/helper', 'stop'), '/stop');
  t.equal(said('/helper', 'agent writer'), '/agent writer');
  t.equal(said('/helper', 'What is new?'), 'What is new?');
  t.equal(said('/helper'), '/help');
  const { incoming } = arrival(commandOf('C1', '/stop')) ?? {};
  t.match(incoming, {
    chat: 'C1',
    sender: { id: 'U1', name: 'ann' },
    isPrivate: false,
    isAddressed: true,
    to: { channel: 'C1' },
  });
  t.equal(incoming?.thread, undefined);
});

t.test('CH-8 a press is the line of its button, said by who pressed, in the thread of the message', async (t) => {
  const pressed = arrival(pressOf('C1', '1.7', 'approve K7M2QX', { thread_ts: '1.1' }))?.incoming;
  t.match(pressed, { press: 'approve K7M2QX', chat: 'C1', thread: '1.1', sender: { id: 'U1', name: 'ann' }, isAddressed: true });
  t.equal(arrival(pressOf('D1', '1.7', 'approve K7M2QX'))?.incoming.thread, undefined);
  const other = {
    ...pressOf('C1', '1.7', 'x'),
    actions: [{ type: 'button', action_id: 'theirs', value: 'x', action_ts: '1.8' }],
  };
  t.equal(arrival(other), undefined, 'a button of another app');
  t.equal(arrival({ ...pressOf('C1', '1.7', 'x'), actions: [] }), undefined);
});

t.test('a stop button ends the answer that it belongs to, and no later one', async (t) => {
  const stopped = (streaming_message_ts: readonly string[]) =>
    arrival(
      eventOf({ type: 'agent_session_stopped', channel: 'C1', thread_ts: '1.1', user: 'U1', streaming_message_ts }),
      (ts) => (ts === '1.9' ? 'msg_1' : undefined),
    )?.incoming;
  t.match(stopped(['1.9']), { stops: 'msg_1', chat: 'C1', thread: '1.1', sender: { id: 'U1' } });
  t.equal(stopped([])?.stops, true, 'nothing was streamed: the one that runs');
  t.equal(stopped(['1.8']), undefined, 'that answer has ended');
});

t.test('images are for the agent, other files and shared messages are not', async (t) => {
  const file = { mimetype: 'image/png', size: 100, url_private: 'https://files.slack.com/1' };
  const content = (more: object) => {
    const { images, unsupported } = arrival(messageOf('D1', '1.5', 'Look', { subtype: 'file_share', ...more }))?.incoming ?? {};
    return images ?? unsupported;
  };
  t.strictSame(content({ files: [file, { ...file, mimetype: 'image/webp' }] }), [
    { url: 'https://files.slack.com/1', size: 100 },
    { url: 'https://files.slack.com/1', size: 100 },
  ]);
  const refused = 'a file that is not an image of up to 10 MB';
  t.equal(content({ files: [file, { ...file, mimetype: 'application/pdf' }] }), refused);
  t.equal(content({ files: [{ ...file, size: 50_000_000 }] }), refused);
  t.equal(content({ files: [{ id: 'F1', file_access: 'check_file_info' }] }), refused);
  t.equal(content({ text: '', attachments: [{ is_msg_unfurl: true, text: 'theirs' }] }), 'a shared message');
  t.equal(content({}), undefined);
});
