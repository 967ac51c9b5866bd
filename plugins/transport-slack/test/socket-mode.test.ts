import { eventually } from '@plugboard/testing';
import t from 'tap';
import { opened } from './support/opened.js';
import { commandOf, messageOf, pressOf } from './support/slack-events.js';

t.test('SL-1 an event is acknowledged once it is durable, and not before', async (t) => {
  const { slack, inbox, run } = await opened(t);
  const durable = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  inbox.decide = async () => {
    asked.resolve();
    await durable.promise;
    return 'taken' as const;
  };
  run();
  await eventually(() => inbox.states.length === 1);
  t.strictSame(inbox.states, ['connected helper (Work)']);
  const envelope = slack.sockets.send('events_api', messageOf('D1', slack.conversations.ts(), 'Hi'));
  await asked.promise;
  t.equal(envelope.acknowledged, undefined);
  durable.resolve();
  await eventually(() => envelope.acknowledged === 1);
  t.match(inbox.taken, [{ chat: 'D1', text: 'Hi', sender: { id: 'U1' }, isPrivate: true }]);
});

t.test('SL-1 commands and presses are acknowledged in the same way', async (t) => {
  const { slack, inbox, run } = await opened(t);
  run();
  await eventually(() => slack.sockets.open.length === 1);
  const command = slack.sockets.send('slash_commands', commandOf('D1', '/new'));
  const press = slack.sockets.send('interactive', pressOf('D1', '1.1', 'approve K7M2QX'));
  const unknown = slack.sockets.send('interactive', {
    type: 'view_submission',
    user: { id: 'U1' },
    team: { id: 'T1' },
    view: {},
  });
  await eventually(() => [command, press, unknown].every(({ acknowledged }) => acknowledged === 1));
  t.strictSame(
    inbox.taken.map(({ text }) => text),
    ['/new', 'approve K7M2QX'],
  );
});

t.test('SL-2 what was not stored is not acknowledged, and runs when it comes again', async (t) => {
  const { slack, inbox, run } = await opened(t);
  const { decide } = inbox;
  run();
  await eventually(() => slack.sockets.open.length === 1);
  const tried = Promise.withResolvers<void>();
  inbox.decide = () => {
    tried.resolve();
    throw new Error('the store is full');
  };
  const envelope = slack.sockets.send('events_api', messageOf('D1', slack.conversations.ts(), 'Hi'));
  await tried.promise;
  inbox.decide = decide;
  slack.sockets.sendAgain(envelope);
  await eventually(() => envelope.acknowledged === 1);
  t.equal(envelope.attempts, 2);
  slack.sockets.sendAgain(envelope);
  await eventually(() => envelope.acknowledged === 1);
  t.equal(inbox.taken.length, 1, 'the third delivery is known');
});

t.test('SL-5 before Slack closes a connection, the next one is open', async (t) => {
  const { slack, inbox, run } = await opened(t);
  const { ended, stop } = run();
  await eventually(() => slack.sockets.open.length === 1);
  for (const reason of ['warning', 'refresh_requested'] as const) {
    const before = slack.sockets.events.length;
    slack.sockets.disconnect(reason);
    await eventually(() => slack.sockets.events.length === before + 2);
  }
  t.strictSame(slack.sockets.events, ['open 1', 'open 2', 'close 1', 'open 3', 'close 2']);
  const envelope = slack.sockets.send('events_api', messageOf('D1', slack.conversations.ts(), 'Hi'));
  await eventually(() => envelope.acknowledged === 3);
  t.equal(inbox.states.length, 1, 'it was connected all the time');
  stop();
  await ended;
});

t.test('SL-5 an acknowledgement on a closed connection is no crash, and no second turn', async (t) => {
  const { slack, inbox, run } = await opened(t);
  const durable = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const { decide } = inbox;
  inbox.decide = async (message) => {
    asked.resolve();
    await durable.promise;
    return decide(message);
  };
  run();
  await eventually(() => slack.sockets.open.length === 1);
  const envelope = slack.sockets.send('events_api', messageOf('D1', slack.conversations.ts(), 'Hi'));
  await asked.promise;
  slack.sockets.cut();
  durable.resolve();
  await eventually(() => envelope.acknowledged === 2);
  t.equal(envelope.attempts, 2);
  t.equal(inbox.taken.length, 1);
  t.strictSame(inbox.states, ['connected helper (Work)'], 'a connection that is lost is replaced');
});

t.test('CH-9 a token that Slack refuses, and a Slack that is not reached, end the attempt with the cure', async (t) => {
  const { slack, run } = await opened(t);
  slack.script(
    'auth.test',
    { error: 'invalid_auth' },
    { status: 500 },
    { status: 429, retryAfter: 9 },
    { error: 'account_inactive' },
  );
  await t.rejects(run().ended, {
    message: 'Slack refuses botToken (invalid_auth): use the Bot User OAuth Token of the installed app',
  });
  await t.rejects(run().ended, { message: 'Slack answers with status 500' });
  await t.rejects(run().ended, { message: 'Slack asks to wait 9 s' });
  await t.rejects(run().ended, { message: /^Slack refuses botToken \(account_inactive\)/ });
  slack.script('apps.connections.open', { error: 'not_allowed_token_type' }, { error: 'missing_scope' });
  const cure = 'generate an app-level token with the scope connections:write';
  await t.rejects(run().ended, { message: `Slack refuses appToken (not_allowed_token_type): ${cure}` });
  await t.rejects(run().ended, { message: `appToken lacks a scope: ${cure}` });
  slack.stop();
  await t.rejects(run().ended, { message: /^Slack does not answer \(/ });
});

t.test('CH-9 a connection that is not greeted, or that is switched off, ends the attempt', async (t) => {
  const { slack, run, clock } = await opened(t);
  slack.sockets.greets = false;
  const ungreeted = run();
  await eventually(() => slack.done('apps.connections.open').length === 1);
  await eventually(() => clock.pending > 0);
  clock.advance(15_000);
  await t.rejects(ungreeted.ended, { message: 'Slack does not greet the connection of Socket Mode' });
  slack.sockets.greets = true;
  const { ended } = run();
  await eventually(() => slack.sockets.open.length === 1);
  slack.sockets.disconnect('link_disabled');
  await t.rejects(ended, { message: 'Socket Mode is switched off: switch it on in the settings of the app' });
  await eventually(() => slack.sockets.open.length === 0);
});

t.test('a stop ends a call that gets no answer', async (t) => {
  const { slack, run } = await opened(t);
  slack.script('auth.test', 'nothing');
  const { ended, stop } = run();
  await eventually(() => slack.calls.length === 1);
  stop();
  await t.rejects(ended);
});
