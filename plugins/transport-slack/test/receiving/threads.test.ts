import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { type Opened, opened } from '../support/opened.js';
import { eventOf, messageOf } from '../support/slack-events.js';

/** An entry that receives. @returns it, and a function that delivers an event. */
async function receiving(t: Test, more: object = {}): Promise<Opened & { deliver(event: object): Promise<void> }> {
  const entry = await opened(t, 'socket', more);
  entry.run();
  await eventually(() => entry.inbox.states.length === 1);
  const deliver = async (event: object) => {
    const envelope = entry.slack.sockets.send('events_api', event);
    await eventually(() => envelope.acknowledged !== undefined);
  };
  return { ...entry, deliver };
}

t.test(
  'in a thread where it answers, every message is for the agent, but those that begin with a mention of another',
  async (t) => {
    const { inbox, deliver } = await receiving(t);
    await deliver(messageOf('C1', '2.0', 'nobody asked it here', { thread_ts: '1.0' }));
    t.strictSame(inbox.taken, []);
    await deliver(messageOf('C1', '3.0', '<@UBOT> Hi'));
    await deliver(messageOf('C1', '3.1', 'And now?', { thread_ts: '3.0', user: 'U2' }));
    await deliver(messageOf('C1', '3.2', '<@U1> what do you think?', { thread_ts: '3.0', user: 'U2' }));
    await deliver(messageOf('C1', '3.3', 'nobody asked it here', { thread_ts: '1.0' }));
    await deliver(messageOf('C2', '3.4', 'another channel', { thread_ts: '3.0' }));
    await deliver(messageOf('C1', '3.5', 'outside of threads'));
    t.strictSame(
      inbox.taken.map(({ text, thread }) => [text, thread]),
      [
        ['Hi', '3.0'],
        ['And now?', '3.0'],
      ],
    );
  },
);

t.test('who is refused does not begin a thread of the agent', async (t) => {
  const { inbox, deliver } = await receiving(t);
  const { decide } = inbox;
  inbox.decide = () => 'refused';
  await deliver(messageOf('C1', '3.0', '<@UBOT> Hi'));
  inbox.decide = decide;
  await deliver(messageOf('C1', '3.1', 'And now?', { thread_ts: '3.0' }));
  t.strictSame(inbox.taken, []);
});

t.test('the message of another person that began the thread is quoted once', async (t) => {
  const { slack, inbox, deliver } = await receiving(t);
  slack.conversations.messages.push({ channel: 'C1', ts: '1.0', user: 'U2', text: 'It is &gt; 30° in <#C2|kitchen>', edits: 0 });
  await deliver(messageOf('C1', '1.1', '<@UBOT> why?', { thread_ts: '1.0', parent_user_id: 'U2' }));
  await deliver(messageOf('C1', '1.2', '<@UBOT> and now?', { thread_ts: '1.0', parent_user_id: 'U2' }));
  t.strictSame(
    inbox.taken.map(({ text, quoted }) => [text, quoted]),
    [
      ['why?', 'It is > 30° in #kitchen'],
      ['and now?', undefined],
    ],
  );
  slack.script('conversations.replies', { error: 'missing_scope' });
  await deliver(messageOf('C1', '2.1', '<@UBOT> why?', { thread_ts: '2.0', parent_user_id: 'U2' }));
  slack.script('conversations.replies', 'nothing');
  await deliver(messageOf('C1', '4.1', '<@UBOT> why?', { thread_ts: '4.0', parent_user_id: 'U2' }));
  for (const one of inbox.taken.slice(2))
    t.match(one, { text: 'why?', quoted: undefined }, 'without the scope or an answer it goes alone');
  t.equal(inbox.taken.length, 4);
});

t.test('CH-4 people of other workspaces are strangers, unless the options let them in', async (t) => {
  const foreign = (ts: string) =>
    messageOf('C1', ts, '<@UBOT> Hi', { user: 'U9', team: 'T1', user_team: 'T9', source_team: 'T9' });
  const own = await receiving(t);
  await own.deliver(foreign('1.0'));
  own.slack.users.set('U1', { id: 'U1', team_id: 'T1' });
  own.slack.users.set('U9', { id: 'U9', team_id: 'T9' });
  const stop = { type: 'agent_session_stopped', channel: 'C1', thread_ts: '1.0', streaming_message_ts: [] };
  await own.deliver(eventOf({ ...stop, user: 'U9' }));
  t.strictSame(own.inbox.taken, []);
  await own.deliver(eventOf({ ...stop, user: 'U1' }));
  t.match(own.inbox.taken, [{ stops: true, sender: { id: 'U1' } }]);
  const { inbox, deliver } = await receiving(t, { allow: ['U9'] });
  await deliver(foreign('1.0'));
  t.match(inbox.taken, [{ sender: { id: 'U9' } }], 'the kit decides by the list');
});

t.test('CH-4 a look-up that fails makes no stranger: the event comes again', async (t) => {
  const { slack, inbox, deliver } = await receiving(t);
  slack.users.set('U1', { id: 'U1', team_id: 'T1' });
  slack.users.set('U9', { id: 'U9', team_id: 'T9' });
  slack.script('users.info', { status: 500 });
  const event = messageOf('D1', '1.0', 'Hi', { team: undefined });
  const envelope = slack.sockets.send('events_api', event);
  await eventually(() => slack.calls.some(({ outcome }) => outcome === '500'));
  t.equal(envelope.acknowledged, undefined);
  slack.sockets.sendAgain(envelope);
  await eventually(() => envelope.acknowledged !== undefined);
  t.equal(inbox.taken.length, 1);
  await deliver(messageOf('D2', '1.1', 'Hi', { team: undefined, user: 'U9' }));
  t.equal(inbox.taken.length, 1);
});

t.test('messages of a thread that come at once are for the agent in their order', async (t) => {
  const { slack, inbox } = await receiving(t);
  const { decide } = inbox;
  inbox.decide = async (message) => {
    await new Promise(setImmediate);
    return decide(message);
  };
  const events = [
    messageOf('C1', '3.0', '<@UBOT> one'),
    ...['two', 'three'].map((text, n) => messageOf('C1', `3.${n + 1}`, text, { thread_ts: '3.0' })),
  ];
  const envelopes = events.map((event) => slack.sockets.send('events_api', event));
  await eventually(() => envelopes.every(({ acknowledged }) => acknowledged !== undefined));
  t.strictSame(
    inbox.taken.map(({ text }) => text),
    ['one', 'two', 'three'],
  );
});
