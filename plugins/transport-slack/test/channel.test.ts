import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { checkOptions, eventually, ModelServer, pluginContract, type StartedServer, startServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { commandOf, eventOf, mentionOf, messageOf, pressOf } from './support/slack-events.js';
import { APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackServer } from './support/slack-server.js';

const check = { entries: (section: string) => (section === 'agents' ? ['helper'] : []) };
const socket = { botToken: BOT_TOKEN, appToken: APP_TOKEN, agent: 'helper' };

t.test('nothing of Slack is loaded before an entry starts', async (t) => {
  // In a process of its own: this one has loaded it.
  const root = join(import.meta.dirname, '../../..');
  const loaded = async (name: string) => {
    const code = `import(${JSON.stringify(name)}).then(() => console.log(Object.keys(require.cache).filter((file) => file.includes('@slack')).length))`;
    return Number((await promisify(execFile)(process.execPath, ['-e', code], { cwd: root, env: {} })).stdout);
  };
  t.equal(await loaded('@plugboard/transport-slack'), 0);
  t.ok((await loaded('@slack/bolt')) > 0);
});

t.test('fulfils the plugin contract', async (t) => {
  // A port on which nothing listens: the entry starts all the same.
  const config = { ...socket, apiUrl: 'http://127.0.0.1:1/api/' };
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url), config, check });
});

t.test('mistakes in the options name the cure', async (t) => {
  const faults = (options: object) => checkOptions(plugin, { botToken: BOT_TOKEN, agent: 'helper', ...options }, check).faults;
  t.strictSame(faults({ appToken: APP_TOKEN }), []);
  t.strictSame(faults({ signingSecret: SIGNING_SECRET }), []);
  t.strictSame(faults({}), ['set appToken (Socket Mode) or signingSecret (HTTP)']);
  t.strictSame(faults({ appToken: APP_TOKEN, signingSecret: SIGNING_SECRET }), ['appToken and signingSecret exclude each other']);
  t.strictSame(faults({ appToken: BOT_TOKEN, botToken: APP_TOKEN }), [
    'botToken: the Bot User OAuth Token begins with xoxb-',
    'appToken: an app-level token begins with xapp-',
  ]);
  t.match(faults({ signingSecret: 'short' }), [/^signingSecret: /]);
  t.match(faults({ appToken: APP_TOKEN, agent: 'helpr' }), [/^agent: there is no agent "helpr"/]);
});

interface Serving {
  readonly slack: SlackServer;
  readonly models: ModelServer;
  readonly server: StartedServer;
  /** Delivers an event by Socket Mode. Resolves when it is acknowledged. */
  deliver(event: object, type?: 'events_api' | 'slash_commands' | 'interactive'): Promise<void>;
  /** The texts of the bot, once there are so many. */
  answers(count: number): Promise<readonly string[]>;
}

/** A whole server with an entry for a scripted Slack. */
async function serving(t: Test, options: object = socket): Promise<Serving> {
  const slack = new SlackServer();
  await slack.start();
  t.teardown(() => slack.stop());
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const server = await startServer({
    transports: { http: { port: 0 }, slack: { use: plugin, apiUrl: slack.apiUrl, ...options } },
    models: { fast: { use: 'openai', baseUrl: models.url, model: 'scripted' } },
    tools: { clock: {} },
    agents: { helper: { model: 'fast', tools: ['clock'], approve: ['clock/*'] }, writer: { model: 'fast' } },
    log: { level: 'info' },
  });
  t.teardown(() => server.stop());
  const deliver: Serving['deliver'] = async (event, type = 'events_api') => {
    await eventually(() => slack.sockets.open.length > 0);
    const envelope = slack.sockets.send(type, event);
    await eventually(() => envelope.acknowledged !== undefined);
  };
  const answers = async (count: number) => {
    const finished = () => slack.conversations.answers.filter(({ metadata }) => metadata !== undefined);
    await eventually(() => finished().length >= count);
    return finished().map(({ text }) => text);
  };
  return { slack, models, server, deliver, answers };
}

t.test('SL-6 a mention is answered in the thread that it begins, a direct message by a post', async (t) => {
  const { slack, models, deliver, answers } = await serving(t);
  models.enqueue({ text: ['Good ', 'morning.'] }, { text: 'Hello.' });
  const ts = slack.conversations.ts();
  await deliver(messageOf('C1', ts, '<@UBOT> Good morning'));
  await deliver(mentionOf('C1', ts, '<@UBOT> Good morning'));
  await answers(1);
  await deliver(messageOf('D1', slack.conversations.ts(), 'Hi'));
  t.strictSame(await answers(2), ['Good morning.', 'Hello.']);
  t.match(slack.conversations.answers, [
    { channel: 'C1', thread_ts: ts },
    { channel: 'D1', thread_ts: undefined },
  ]);
  t.strictSame(
    models.requests.map(({ body }) => body.messages.at(-1)?.content),
    ['Good morning', 'Hi'],
  );
});

t.test('SL-3 eleven events for one message by HTTP are one turn, answered at once, whatever it does', async (t) => {
  const { slack, models, server, answers } = await serving(t, {
    botToken: BOT_TOKEN,
    signingSecret: SIGNING_SECRET,
    agent: 'helper',
  });
  const gate = Promise.withResolvers<void>();
  models.enqueue({ text: [gate.promise, 'Hello.'] });
  const url = `${server.url}/channels/slack`;
  await eventually(async () => (await slack.post(url, { type: 'url_verification', challenge: 'c' })).status === 200);
  const ts = slack.conversations.ts();
  const events = Array.from({ length: 11 }, () => messageOf('D1', ts, 'Hi'));
  for (const { status } of await Promise.all(events.map((event) => slack.post(url, event)))) t.equal(status, 200);
  gate.resolve();
  t.strictSame(await answers(1), ['Hello.']);
  t.equal(models.requests.length, 1);
  t.equal((await slack.post(url, messageOf('D1', ts, 'Hi'), { secret: 'f'.repeat(32) })).status, 401);
  await slack.post(url, messageOf('D1', ts, 'Hi'), { secret: 'f'.repeat(32) });
  const warnings = server.logs.filter(({ msg }) => String(msg).includes('wrong signature'));
  t.equal(warnings.length, 1);
});

t.test('CH-8 an approval is given by a button, and a late press does nothing', async (t) => {
  const { slack, models, deliver, answers } = await serving(t);
  models.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { text: 'It is noon.' });
  const ts = slack.conversations.ts();
  await deliver(mentionOf('C1', ts, '<@UBOT> What time is it?'));
  await answers(1);
  const [asked] = slack.conversations.answers;
  const [, { elements = [] } = {}] = (asked?.blocks ?? []) as { elements?: { value: string; text: { text: string } }[] }[];
  const blocks = elements.length > 0 ? elements : ((asked?.blocks?.[0] as { elements?: typeof elements })?.elements ?? []);
  const approve = String(blocks.find(({ text }) => text.text === 'Approve')?.value);
  t.match(approve, /^approve /);
  const press = () => pressOf('C1', String(asked?.ts), approve, { thread_ts: ts });
  await deliver(press(), 'interactive');
  t.equal((await answers(2))[1], 'It is noon.');
  t.equal(slack.conversations.answers[1]?.thread_ts, ts);
  await deliver(press(), 'interactive');
  await wait(50);
  t.equal(slack.conversations.answers.length, 2);
  t.equal(models.requests.length, 2);
});

t.test('CH-4 with pairing an unknown sender is told a code, and nothing is asked, downloaded or run', async (t) => {
  const { slack, models, deliver, answers } = await serving(t, { ...socket, pairing: true });
  const image = slack.file('a.png', 'image/png', new Uint8Array(8));
  await deliver(messageOf('D1', slack.conversations.ts(), 'Hi', { subtype: 'file_share', files: [image] }));
  t.match(await answers(1), [/^You are not paired yet\. .*plugboard pair [A-Z0-9]{4}-[A-Z0-9]{4}$/]);
  await deliver(commandOf('D1', '/new'), 'slash_commands');
  await deliver(pressOf('D1', '1.1', 'approve K7M2QX'), 'interactive');
  t.equal(models.requests.length, 0);
  t.notOk(slack.calls.some(({ method }) => method === 'file' || method === 'users.info' || method.startsWith('conversations')));
});

t.test('images go to the agent, other files get one line', async (t) => {
  const { slack, models, deliver, answers } = await serving(t);
  models.enqueue({ text: 'A dot.' });
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABXvMqOgAAAABJRU5ErkJggg==',
    'base64',
  );
  const files = [slack.file('a.png', 'image/png', png)];
  await deliver(messageOf('D1', slack.conversations.ts(), 'What is it?', { subtype: 'file_share', files }));
  t.strictSame(await answers(1), ['A dot.']);
  t.match(JSON.stringify(models.requests[0]?.body.messages.at(-1)?.content), /data:image\/png;base64,iVBOR/);
  const pdf = { id: 'F9', name: 'a.pdf', mimetype: 'application/pdf', size: 50_000_000, url_private: `${slack.url}/files/F9` };
  await deliver(messageOf('D1', slack.conversations.ts(), 'And this?', { subtype: 'file_share', files: [pdf] }));
  t.match((await answers(2))[1], /^I cannot read a file that is not an image/);
  t.equal(slack.calls.filter(({ method }) => method === 'file').length, 1);
  t.equal(models.requests.length, 1);
});

t.test('CH-5 commands, an agent that is chosen, and a stop that ends a stream', async (t) => {
  const { slack, models, deliver, answers } = await serving(t);
  await deliver(commandOf('D1', '/helper', 'agent writer'), 'slash_commands');
  await deliver(messageOf('D1', slack.conversations.ts(), '!new'));
  await answers(2);
  const never = Promise.withResolvers<void>();
  models.enqueue({ text: ['Once upon', never.promise] }, { text: 'Hello.' });
  const ts = slack.conversations.ts();
  await deliver(mentionOf('C1', ts, '<@UBOT> Tell me a long story'));
  const stream = await eventually(() => slack.conversations.answers.find(({ text }) => text === 'Once upon'));
  await deliver(messageOf('C1', slack.conversations.ts(), '!stop', { thread_ts: ts }));
  const texts = await answers(3);
  t.match(texts[2], /^Stopped\./);
  t.equal(stream.streaming_state, 'completed');
  never.resolve();
  await deliver(messageOf('C1', slack.conversations.ts(), 'Hi', { thread_ts: ts }));
  t.equal((await answers(4))[3], 'Hello.');
});

t.test('the stop button of Slack ends the answer', async (t) => {
  const { slack, models, deliver, answers } = await serving(t);
  const never = Promise.withResolvers<void>();
  models.enqueue({ text: ['Once upon', never.promise] });
  const ts = slack.conversations.ts();
  await deliver(mentionOf('C1', ts, '<@UBOT> Tell me a long story'));
  slack.users.set('U1', { id: 'U1', team_id: 'T1' });
  const stream = await eventually(() => slack.conversations.answers.find(({ text }) => text === 'Once upon'));
  const event = { type: 'agent_session_stopped', channel: 'C1', thread_ts: ts, user: 'U1', streaming_message_ts: [stream.ts] };
  await deliver(eventOf(event));
  t.match(await answers(1), [/^Stopped\./]);
  never.resolve();
});

t.test('CH-9 an entry starts and stops without Slack, and a wrong token is one line', async (t) => {
  const slack = new SlackServer();
  await slack.start();
  t.teardown(() => slack.stop());
  slack.script('auth.test', { error: 'invalid_auth' }, { error: 'invalid_auth' }, { error: 'invalid_auth' });
  const config = (apiUrl: string) => ({
    transports: { slack: { use: plugin, ...socket, apiUrl } },
    models: { fast: { use: 'openai', baseUrl: 'http://127.0.0.1:1', model: 'scripted' } },
    agents: { helper: { model: 'fast' } },
  });
  const refused = await startServer(config(slack.apiUrl));
  await eventually(() => slack.calls.length >= 2);
  const lines = refused.logs.filter(({ level }) => level === 'warn' || level === 'error');
  await refused.stop();
  const about = lines.filter(({ msg }) => String(msg).includes('botToken'));
  t.equal(about.length, 1);
  t.match(about[0], { msg: /Slack refuses botToken \(invalid_auth\): use the Bot User OAuth Token/, entry: 'transports.slack' });
  t.notMatch(JSON.stringify(refused.logs), BOT_TOKEN);

  slack.script('auth.test', 'nothing', 'nothing');
  for (const apiUrl of [slack.apiUrl, 'http://127.0.0.1:1/api/']) {
    const calls = slack.calls.length;
    const server = await startServer(config(apiUrl));
    if (apiUrl === slack.apiUrl) await eventually(() => slack.calls.length > calls);
    const begun = performance.now();
    await server.stop();
    t.ok(performance.now() - begun < 10_000);
  }
});
