import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { ModelServer, startServer } from '@plugboard/testing';
import t from 'tap';
import { Page } from '../support/page.js';
import { toolFixtures } from '../support/with-tools.js';
import { folderOf, mistakesIn, root } from './snippets.js';

const page = new Page(join(root, 'docs/guides/coding-agents.md'));
const [configuration] = page.in('yaml');
const variables = Object.fromEntries(
  page.in('ini').flatMap(({ text }) =>
    text
      .trim()
      .split('\n')
      .map((line) => line.split('=', 2) as [string, string]),
  ),
);

t.test('every configuration is valid', async (t) => {
  const folder = await folderOf(t, page);
  for (const { text, line } of page.in('yaml')) t.equal(await mistakesIn(text, folder), '', `line ${line}`);
});

t.test('the agent works as the page says', async (t) => {
  const [main, spare] = [await ModelServer.start(), await ModelServer.start()];
  const yaml = configuration?.text
    .replace('provider: openai,', `provider: openai, baseUrl: "${main.url}",`)
    .replace(
      'command: npx, args: [-y, "@modelcontextprotocol/server-filesystem",',
      `command: "\${NODE}", args: ["\${FILES_SERVER}",`,
    );
  const { env } = toolFixtures;
  const server = await startServer(yaml ?? '', {
    env: { ...env, PORT: '0', ADA_TOKEN: 'token-of-ada-0001', OPENAI_API_KEY: 'key', OLLAMA_HOST: new URL(spare.url).host },
    files: { 'handbook/style.txt': 'Tabs, not spaces.' },
  });
  t.teardown(async () => {
    await server.stop();
    await Promise.all([main.close(), spare.close()]);
  });
  const { ANTHROPIC_MODEL: model = '', ANTHROPIC_DEFAULT_HAIKU_MODEL: small } = variables;
  const client = (authToken: string) => new Anthropic({ baseURL: server.url, authToken, apiKey: null, maxRetries: 0 });
  const ask = { model, max_tokens: 100, messages: [{ role: 'user' as const, content: 'What does the handbook say?' }] };
  await t.rejects(client('wrong').messages.create(ask), Anthropic.AuthenticationError);

  main.enqueue({ toolCalls: [{ name: 'handbook__read_text_file', arguments: { path: 'style.txt' } }] });
  main.respond({ status: 401 });
  spare.enqueue({ text: 'Tabs.' });
  const message = await client('token-of-ada-0001').messages.create(ask);
  t.match(message.content, [{ type: 'text', text: 'Tabs.' }]);
  t.match(spare.requests[0]?.body.messages.at(-1), { role: 'tool', content: /Tabs, not spaces/ });
  spare.enqueue({ text: 'Small.' });
  t.equal(small, model);
  main.respond({ text: 'Small.' });
  t.match(await client('token-of-ada-0001').messages.create({ ...ask, model: 'claude-haiku-4-5' }), {
    model: 'claude-haiku-4-5',
  });
});

t.test('the settings for Codex CLI name an agent of the page and the paths of this server', async (t) => {
  const [toml] = page.in('toml');
  const setting = (name: string) => new RegExp(`^${name} = (.*)$`, 'm').exec(toml?.text ?? '')?.[1];
  t.match(configuration?.text, `  ${JSON.parse(setting('model') ?? '""')}:\n`);
  t.equal(setting('base_url'), '"http://127.0.0.1:8080/v1"');
  t.equal(setting('wire_api'), '"responses"');
  for (const transport of ['responses', 'sse', 'websocket']) t.match(configuration?.text, `\n  ${transport}: {}`);
});
