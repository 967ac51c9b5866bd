import { join } from 'node:path';
import { eventually, ModelServer } from '@plugboard/testing';
import t from 'tap';
import { Plugboard } from '../../plugins/cli/test/plugboard.js';
import { commandOf, mentionOf, messageOf, pressOf } from '../../plugins/transport-slack/test/support/slack-events.js';
import { APP_TOKEN, BOT_TOKEN, SlackServer } from '../../plugins/transport-slack/test/support/slack-server.js';
import { Victim } from './victim.js';

const yaml = (apiUrl: string) => `
transports:
  slack:
    use: ${JSON.stringify(join(import.meta.dirname, '../../plugins/transport-slack'))}
    botToken: ${BOT_TOKEN}
    appToken: ${APP_TOKEN}
    apiUrl: ${apiUrl}
    agent: helper
    pairing: true
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 } }
tools: { clock: {} }
agents:
  helper: { model: fast, tools: [clock], approve: ["clock/*"] }
  writer: { model: fast, system: You write. }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

t.test('CH-1 CH-8 PA-3 a chat in Slack: pairing, an agent, a stop, an approval and a crash', async (t) => {
  const slack = new SlackServer();
  await slack.start();
  t.teardown(() => slack.stop());
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const folder = t.testdir({ 'plugboard.yaml': yaml(slack.apiUrl) });
  const victim = new Victim(t, folder, { MODEL_URL: models.url });
  const transcript: string[] = [];

  const deliver = async (event: object, type: 'events_api' | 'slash_commands' | 'interactive' = 'events_api') => {
    const envelope = slack.sockets.send(type, event);
    await eventually(() => envelope.acknowledged !== undefined);
  };
  const say = async (channel: string, text: string, thread?: string): Promise<string> => {
    const ts = slack.conversations.ts();
    transcript.push(`ann in ${channel}${thread ? ' (thread)' : ''}: ${text}`);
    const more = thread === undefined ? {} : { thread_ts: thread };
    if (text.includes('<@UBOT>')) await deliver(mentionOf(channel, ts, text, more));
    await deliver(messageOf(channel, ts, text, more));
    return ts;
  };
  /** The next message of the bot that is complete. */
  let seen = 0;
  const answer = async () => {
    const finished = () => slack.conversations.answers.filter(({ metadata }) => metadata !== undefined);
    const next = await eventually(() => finished()[seen]);
    seen++;
    transcript.push(
      `helper in ${next.channel}${next.thread_ts ? ' (thread)' : ''}: ${next.text}${next.edits ? ' (edited)' : ''}`,
    );
    return next;
  };
  const growing = (text: string) => eventually(() => slack.conversations.answers.find((one) => one.text.startsWith(text)));

  victim.launch();
  await say('D1', 'Hi');
  const { text: told } = await answer();
  const [code = ''] = /[A-Z0-9]{4}-[A-Z0-9]{4}/.exec(told) ?? [];
  const paired = new Plugboard(t, ['pair', code], { cwd: folder, env: { MODEL_URL: models.url } });
  transcript.push(`$ plugboard pair ${code}`);
  t.equal(await paired.exit(), 0, paired.stderr);
  t.match((await answer()).text, /^You are paired now/);

  models.enqueue({ text: 'Hello, Ann.' });
  await say('D1', 'Hi');
  t.equal((await answer()).text, 'Hello, Ann.');
  transcript.push('ann in D1: /agent writer (slash command)');
  await deliver(commandOf('D1', '/agent', 'writer'), 'slash_commands');
  t.match((await answer()).text, /^The agent writer answers here now/);

  const stopped = Promise.withResolvers<void>();
  models.enqueue({ text: ['Once upon a time ', stopped.promise] });
  const story = await say('C1', '<@UBOT> Tell me a long story');
  await growing('Once upon a time');
  await say('C1', '!stop', story);
  t.match((await answer()).text, /^Stopped\./);
  stopped.resolve();

  models.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { text: 'It is noon.' });
  const question = await say('C1', '<@UBOT> What time is it?');
  const asked = await answer();
  const approve = /approve [A-Z0-9]+/.exec(JSON.stringify(asked.blocks))?.[0] ?? '';
  transcript.push(`ann presses "${approve}"`);
  await deliver(pressOf('C1', asked.ts, approve, { thread_ts: question }), 'interactive');
  t.equal((await answer()).text, 'It is noon.');

  const cut = Promise.withResolvers<void>();
  models.enqueue({ text: ['The answer to everything ', cut.promise] }, { text: 'The answer to everything is 42.' });
  await say('C1', 'And the answer to everything?', question);
  await growing('The answer to everything');
  transcript.push('the server is killed, and starts again');
  await victim.kill();
  cut.resolve();
  victim.launch();
  const repaired = await answer();
  t.match(repaired, { text: 'The answer to everything is 42.', edits: 1, thread_ts: question });
  t.equal(await victim.stop(), 0);
  t.equal(slack.conversations.answers.length, seen, 'nothing came twice, and nothing was left over');
  for (const line of transcript) t.comment(line);
});
