import { eventually } from '@plugboard/testing';
import t from 'tap';
import { commandOf } from '../src/chats/commands.js';
import { sessionKey } from '../src/chats/session-key.js';
import { opened } from './open-channel.js';

t.test('CH-5 /new, /agent and /help answer without a model call, and a choice outlives /new and a restart', async (t) => {
  const first = opened();
  await first.start();
  for (const text of ['/help', '/start now', '/agent', '/agent nobody', '/agent OTHER', ' /new ', 'Hi'])
    await first.platform.say(text);
  await first.sent(7);
  await first.stop();
  const [help, start, agents, nobody, chosen, began, answer] = first.platform.texts();
  t.match(help, /\/new begins a new conversation/);
  t.equal(start, help);
  t.match(agents, /- helper \(answers here\)\n- other/);
  t.equal(nobody, 'There is no agent "nobody" here. Agents: helper, other.');
  t.equal(chosen, 'The agent other answers here now.');
  t.equal(began, 'A new conversation begins.');
  t.equal(answer, 'ok');
  t.ok(first.platform.sent.slice(0, 6).every(({ kind }) => kind === 'notice'));
  t.match(
    first.runtime.requests.map(({ session, target }) => [target.name, session?.key]),
    [['other', 'desk:c1~1']],
  );

  const second = opened({ state: first.state });
  await second.start();
  await second.platform.say('Hi', 'c1', { ids: ['later'] });
  await second.platform.say('Hi', 'c2', { ids: ['even later'] });
  await second.sent(2);
  await second.stop();
  t.strictSame(
    second.runtime.requests.map(({ session, target }) => [target.name, session?.key]),
    [
      ['other', 'desk:c1~1'],
      ['helper', 'desk:c2'],
    ],
  );
});

t.test('CH-5 any other word is for the agent', async (t) => {
  for (const text of ['/stops', '/', 'stop', '/agents', 'Say /stop', '!new']) t.equal(commandOf(text), undefined, text);
  t.strictSame(commandOf('/Stop please'), { word: 'stop', rest: 'please' });
  t.strictSame(commandOf('/agent  my agent '), { word: 'agent', rest: 'my agent' });
});

t.test('CH-5 /agent offers the agents of the option only', async (t) => {
  const { platform, start, stop, sent } = opened({ config: { agents: ['helper'] } });
  await start();
  await platform.say('/agent');
  await platform.say('/agent other');
  await sent(2);
  await stop();
  t.match(platform.texts(), ['Agents:\n- helper (answers here)\nChoose one with /agent NAME.', /^There is no agent "other"/]);
});

t.test('CH-5 /stop overtakes its own queue, ends the answer, and drops what waits there alone', async (t) => {
  const { platform, runtime, start, stop, sent, logs } = opened();
  await start();
  runtime.enqueue({ after: new Promise(() => {}) }, { text: 'Hello, Ben.' }, { text: 'Hello again.' });
  await platform.say('A long story');
  await eventually(() => runtime.requests.length === 1);
  await platform.say('Hi', 'c2');
  await platform.say('/stop', 'c3');
  await platform.say('And another one');
  await platform.say('/stop');
  await platform.say('Hi');
  await sent(4);
  await stop();
  t.strictSame(platform.texts('c1'), ['Stopped. 1 waiting message was dropped.', 'Hello again.']);
  t.strictSame(platform.texts('c2'), ['Hello, Ben.'], 'another chat did not wait');
  t.strictSame(platform.texts('c3'), ['Nothing is running.']);
  t.equal(runtime.requests.length, 3);
  t.strictSame(logs, []);
});

t.test('CH-5 /stop counts when a crash comes between', async (t) => {
  const first = opened();
  await first.start();
  first.runtime.enqueue({ after: new Promise(() => {}) });
  await first.platform.say('A long story');
  await eventually(() => first.runtime.requests.length === 1);
  await first.platform.say('Another one');
  const left = await first.state.list('transports.desk', { prefix: 'kit/in/' });
  await first.stop(AbortSignal.abort()).catch(() => {});
  const second = opened({ state: first.state });
  await second.state.change([{ entry: 'transports.desk', key: 'kit/stopped', text: undefined }]);
  t.equal(left.length, 2);
  second.platform.running = async (inbox, signal) => {
    await inbox.receive([stopMessage]);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  };
  second.runtime.enqueue({ after: new Promise(() => {}) });
  await second.start();
  await second.sent(1);
  await second.stop();
  t.strictSame(second.platform.texts(), ['Stopped. 1 waiting message was dropped.']);
});

const stopMessage = {
  ids: ['stop'],
  chat: 'c1',
  to: { chat: 'c1' },
  sender: { id: 'c1-ann' },
  text: '/stop',
  isPrivate: true,
  isAddressed: true,
};

t.test('a stop button ends the answer that it belongs to, and no other', async (t) => {
  const { platform, runtime, start, stop, sent } = opened();
  const shown: string[] = [];
  platform.live = ({ id }) => {
    shown.push(id);
    return undefined;
  };
  await start();
  runtime.enqueue({ after: new Promise(() => {}) }, { text: 'Second.' });
  await platform.say('A long story');
  await eventually(() => runtime.requests.length === 1);
  await platform.say('Another one');
  await platform.say('', 'c1', { stops: 'msg_of_another_answer' });
  await platform.say('', 'c1', { stops: String(shown[0]) });
  await sent(2);
  await platform.say('', 'c1', { stops: true });
  await platform.say('Hi');
  await sent(3);
  await stop();
  t.strictSame(platform.texts(), ['Stopped.', 'Second.', 'ok']);
  t.equal(platform.sent[0]?.id, shown[0], 'it is told in the place of the answer');
});

t.test('the session of a chat is named by entry, chat, thread and the number of /new', async (t) => {
  t.equal(sessionKey('desk', { chat: '4711' }), 'desk:4711');
  t.equal(sessionKey('desk', { chat: '4711', thread: '17' }, 2), 'desk:4711:17~2');
  t.equal(sessionKey('desk', { chat: 'a~1' }), 'desk:a~~1', 'no chat reaches the session of another');
  t.not(sessionKey('desk', { chat: 'a~1' }, 1), sessionKey('desk', { chat: 'a' }, 11));
  t.match(sessionKey('desk', { chat: '~'.repeat(256) }, 1), /^desk:[0-9a-f]{64}$/);
});
