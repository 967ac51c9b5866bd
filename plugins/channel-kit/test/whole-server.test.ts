import { definePlugin, type Principal, ToolSources } from '@plugboard/kernel';
import { eventually, ModelServer, startServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { channelOptions, groupsOption, openChannel } from '../src/index.js';
import { ScriptedPlatform } from './scripted-platform.js';

/** A whole server with a channel, and an agent whose tool a person must approve. */
async function serve(t: Test, options: object = {}) {
  const platform = new ScriptedPlatform();
  const channel = definePlugin({
    name: '@plugboard/transport-scripted',
    apiVersion: 1,
    summary: 'Answers the messages of a test',
    configSchema: {
      type: 'object',
      properties: { ...channelOptions, groups: groupsOption },
      required: ['agent'],
      additionalProperties: false,
    },
    exclusive: true,
    register: (ctx) => openChannel(ctx, platform),
  });
  const ran: { readonly command: string; readonly principal: Principal }[] = [];
  const shell = definePlugin({
    name: '@plugboard/tool-shell',
    apiVersion: 1,
    summary: 'Runs nothing',
    configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const inputSchema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] };
      const run = ({ command }: { readonly command: string }, { principal }: { readonly principal: Principal }) => {
        ran.push({ command, principal });
        return `output of ${command}`;
      };
      ctx.contribute(ToolSources, {
        tools: () => [{ name: 'run', description: 'Runs', effect: 'write', inputSchema, run: run as never }],
      });
    },
  });
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const server = await startServer({
    transports: { desk: { use: channel, agent: 'ops', ...options } },
    models: { fast: { use: 'openai', baseUrl: models.url, model: 'big-1' } },
    tools: { shell: { use: shell } },
    agents: { ops: { model: 'fast', tools: ['shell'], approve: 'write' }, free: { model: 'fast', tools: ['shell'] } },
  });
  t.teardown(() => server.stop());
  const calls = (...commands: string[]) =>
    models.enqueue({ toolCalls: commands.map((command) => ({ name: 'shell__run', arguments: { command } })) });
  const sent = (count: number) => eventually(() => platform.sent.length >= count);
  return { platform, models, ran, calls, sent, server };
}

t.test('CH-3 tools see the sender as the principal, and the history does not', async (t) => {
  const { platform, models, ran, calls, sent } = await serve(t, { agent: 'free' });
  calls('look');
  models.enqueue({ text: 'Done.' });
  await platform.say('Go', 'c1', { thread: 'topic' });
  await sent(1);
  t.match(ran[0]?.principal, {
    project: 'default',
    token: 'desk',
    subject: 'c1-ann',
    claims: { platform: 'scripted', chat: 'c1', thread: 'topic', name: 'Ann' },
  });
  t.notMatch(JSON.stringify(models.requests.map(({ body }) => body)), /Ann|c1-ann/);
  t.match(platform.sent[0], { text: 'Done.', chat: 'c1' });
});

t.test('CH-8 a request for approval has buttons, and a press is their line, said by who pressed', async (t) => {
  const { platform, models, ran, calls, sent } = await serve(t);
  calls('make one');
  await platform.say('Go');
  await sent(1);
  const [{ text = '', buttons = [] } = {}] = platform.sent;
  t.match(text, /needs approval[\s\S]*make one/);
  t.strictSame(
    buttons.map(({ label }) => label),
    ['Approve', 'Deny'],
  );
  const approve = String(buttons[0]?.line);
  t.match(approve, /^approve [A-Z2-9]{6}$/);
  t.strictSame(ran, []);

  models.enqueue({ text: 'Made.' });
  await platform.say('', 'c1', { press: approve, sender: { id: 'somebody else' } });
  await sent(2);
  t.match(platform.sent[1], { kind: 'failed' }, 'it is not theirs to decide');
  t.strictSame(ran, []);
  await platform.say('', 'c1', { press: approve });
  await sent(3);
  t.match(platform.sent[2], { text: 'Made.', kind: 'reply' });
  t.equal(ran.length, 1);

  const { length } = models.requests;
  await platform.say('', 'c1', { press: approve });
  await platform.say('', 'c1', { press: String(buttons[1]?.line) });
  await platform.say('', 'c1', { press: 'approve AAAAAA' });
  await platform.say('/help');
  await sent(4);
  t.match(platform.sent[3]?.text, /\/new/, 'a late press does nothing: no turn, no word');
  t.equal(models.requests.length, length);
  t.equal(ran.length, 1);
});

t.test('CH-8 of several calls each has buttons, and all together; another message makes them late', async (t) => {
  const { platform, models, ran, calls, sent } = await serve(t);
  calls('make one', 'make two');
  await platform.say('Go');
  await sent(1);
  const { buttons = [] } = platform.sent[0] ?? {};
  t.match(
    buttons.map(({ label }) => label),
    [/^Approve [A-Z2-9]{6}$/, /^Deny /, /^Approve /, /^Deny /, 'Approve all', 'Deny all'],
  );
  await platform.say('', 'c1', { press: String(buttons[0]?.line) });
  await sent(2);
  const { buttons: left = [] } = platform.sent[1] ?? {};
  t.strictSame(
    left.map(({ line }) => line),
    [buttons[2]?.line, buttons[3]?.line],
    'what still waits',
  );
  models.enqueue({ text: 'Never mind.' });
  await platform.say('Forget it');
  await sent(3);
  for (const { line } of [...buttons, ...left]) await platform.say('', 'c1', { press: line });
  models.enqueue({ text: 'Hello.' });
  await platform.say('Hi');
  await sent(4);
  t.match(platform.texts().slice(2), [/Never mind\.$/, 'Hello.']);
  t.strictSame(
    ran.map(({ command }) => command),
    ['make one'],
    'what was approved ran once, when nothing waited any more',
  );
});

t.test('images go to the agent, everything else is answered with one line', async (t) => {
  const { platform, models, sent } = await serve(t);
  platform.images.set('cat', Buffer.from('GIF89a and pixels', 'latin1'));
  platform.images.set('text', Buffer.from('no image'));
  platform.images.set('large', Buffer.concat([Buffer.from('GIF89a'), Buffer.alloc(10_000_000)]));
  models.enqueue({ text: 'A cat.' });
  await platform.say('What is it?', 'c1', { images: ['cat', 'cat'], quoted: 'Look\nthere' });
  await sent(1);
  const { content } = models.requests[0]?.body.messages.at(-1) ?? {};
  t.match(content, [
    { type: 'image_url', image_url: { url: /^data:image\/gif;base64,R0lGOD/ } },
    { type: 'image_url' },
    { type: 'text', text: '> Look\n> there\n\nWhat is it?' },
  ]);
  await platform.say('', 'c1', { images: ['text'] });
  await platform.say('', 'c1', { images: ['large'] });
  await platform.say('', 'c1', { images: ['gone'] });
  await platform.say('Listen', 'c1', { unsupported: 'a voice message' });
  await platform.say('', 'c1', { images: Array.from({ length: 11 }, () => 'cat') });
  t.equal(await platform.say('  '), 'ignored');
  await sent(6);
  t.ok(platform.sent.slice(1).every(({ kind, text }) => kind === 'notice' && text.startsWith('I cannot read ')));
  t.equal(models.requests.length, 1);
});
