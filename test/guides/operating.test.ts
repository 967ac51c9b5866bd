import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { Page } from '../support/page.js';
import { Shell } from '../support/shell.js';
import { addressOf, chat, folderOf, root, testGuide, tryCommands } from './snippets.js';

const operating = new Page(join(root, 'docs/guides/operating.md'));

// Starts some programs, one after the other.
t.setTimeout(300_000);

testGuide(t, operating);

t.test('every command prints what the page shows', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  await tryCommands(t, operating, { OPENAI_BASE_URL: models.url });
  t.match(models.requests[0]?.headers, { authorization: /^Bearer sk-/ }, 'the key comes from .env');
});

t.test('the reference has all sections, and the guide the options of every tool entry', async (t) => {
  const { output } = await new Shell(t, await folderOf(t, operating)).run('npx plugboard schema');
  const { properties } = JSON.parse(output) as FileSchema;
  const sections = new Page(join(root, 'docs/reference/configuration.md')).table('section').map(([section]) => section);
  t.strictSame(['$schema', ...sections].toSorted(), Object.keys(properties).toSorted());
  const { optional, unless, use, ...own } = properties.tools?.properties?.clock?.properties ?? {};
  t.strictSame(Object.keys(own), ['timeout', 'resultLimit']);
  // The runtime's own time limit holds where neither the file nor the source of a tool sets one.
  for (const [option, { default: value = '60s' }] of Object.entries(own))
    t.ok(new RegExp(`\`${option}\` [^(]*\\(\`${value}\`\\)`).test(operating.text), option);
});

t.test('the log has the fields and messages of the tables', async (t) => {
  const sources = globSync('{kernel,plugins/*}/src/**/*.ts', { cwd: root }).map((path) => readFileSync(join(root, path), 'utf8'));
  for (const [message = ''] of operating.table('msg'))
    t.ok(
      sources.some((source) => source.includes(message)),
      message,
    );

  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const shell = new Shell(t, await folderOf(t, operating), { PORT: '0', OPENAI_BASE_URL: models.url });
  const server = shell.start('npx plugboard start');
  const url = await addressOf(server);
  const headers = { 'x-request-id': 'mine' };
  t.equal((await chat(url, { model: 'assistant', session_id: 'a', stream: true }, ['Hi'], headers)).status, 200);
  t.equal((await chat(url, { model: '' }, ['Hi'])).status, 400);
  t.equal((await fetch(`${url}/v1/chat/completions`)).status, 405);
  t.equal((await fetch(`${url}/nowhere`)).status, 404); // within a second of another refusal: no line
  t.equal(await server.stop(), 0);

  const lines: Record<string, unknown>[] = server.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const everyLine = ['time', 'level', 'msg', 'service', 'version', 'pid'];
  for (const line of lines) t.hasOwnProps(line, everyLine);
  const requests = lines.filter(({ msg }) => msg === 'request');
  t.match(requests[0], {
    plugin: '@plugboard/transport-http',
    entry: 'transports.http',
    client_request_id: 'mine',
    outcome: 'ok',
  });
  const shown = operating.table('field').flatMap(([fields = '']) => fields.split(', '));
  const fields = new Set(requests.flatMap((line) => Object.keys(line)));
  const ofCredentials = ['token_id', 'token_name', 'refused', 'scope', 'left_out']; // an open server has none
  const ofModels = ['finish_reason', 'usage_known']; // this one counts its tokens, and says `stop`
  const ofTracing = ['trace_id', 'span_id']; // of a plugin that this server does not have
  // The row of `route` mentions `path`.
  t.strictSame(
    [...fields, ...ofCredentials, ...ofModels, ...ofTracing].toSorted(),
    [...everyLine, 'plugin', 'entry', ...shown, 'path'].toSorted(),
  );
});

/** The part of `plugboard schema` that the pages show. */
interface FileSchema {
  readonly properties: Readonly<Record<string, OptionsSchema>>;
}

interface OptionsSchema {
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, OptionsSchema>>;
}
