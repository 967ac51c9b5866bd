import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import * as kernel from '@plugboard/kernel';
import { type DefinedPlugin, type ExtensionPoint, ModelConnectors } from '@plugboard/kernel';
import * as kernelCli from '@plugboard/kernel/contracts';
import { modelConnectorContract, modelRequest, testContext } from '@plugboard/testing';
import * as chatCompletions from '@plugboard/transport-chat-completions';
import * as http from '@plugboard/transport-http';
import t, { type Test } from 'tap';
import { Page } from '../support/page.js';
import { Shell } from '../support/shell.js';
import { addressOf, chat, folderOf, root, testGuide, tryCommands } from './snippets.js';

const plugins = new Page(join(root, 'docs/guides/writing-plugins.md'));

// Starts some programs, one after the other.
t.setTimeout(300_000);

testGuide(t, plugins);

t.test('the code compiles, its tests pass, and every command prints what the page shows', async (t) => {
  await tryCommands(t, plugins);
});

t.test('the plugins work in a running server', async (t) => {
  const folder = await folderOf(t, plugins);
  const file = `
    transports: { http: { port: 0 }, chat-completions: {}, agent-cards: { use: ./agent-cards.ts }, lines: { use: ./lines.ts, port: 0, agent: secretary } }
    models: { demo: {}, lines: { use: ./line-model.ts, url: "${await lineServer(t)}", model: small } }
    tools: { notes: { use: ./notes.ts, path: ./notes.txt } }
    plugins: { meter: { use: ./turn-meter.ts, maxMessages: 2 } }
    agents: { secretary: { description: Writes things down, model: demo, tools: [notes] } }
  `;
  await writeFile(join(folder, 'all.yaml'), file);
  const server = new Shell(t, folder).start('npx plugboard start -c all.yaml');
  const url = await addressOf(server);

  const said = await chat(url, { model: 'lines' }, ['Hello']);
  t.match(await said.json(), {
    choices: [{ message: { content: 'You said: Hello' } }],
    usage: { prompt_tokens: 1, completion_tokens: 3 },
  });
  const noted = await chat(url, { model: 'secretary' }, ['Write a note: "buy milk"']);
  t.match(await noted.json(), { choices: [{ message: { content: /Noted\./ } }] });
  t.match(readFileSync(join(folder, 'notes.txt'), 'utf8'), /^\d{4}-\d\d-\d\dT[\d:.]+Z buy milk\n$/);
  const refused = await chat(url, { model: 'secretary' }, ['one', 'two', 'three']);
  t.equal(refused.status, 400);
  t.match(await refused.json(), {
    error: { message: 'This conversation has more than 2 messages; start a new one.', param: 'messages' },
  });
  const card = await fetch(`${url}/v1/agents/secretary`);
  t.strictSame(await card.json(), { name: 'secretary', description: 'Writes things down' });
  t.equal((await fetch(`${url}/v1/agents/nobody`)).status, 404);

  const lines = connect(Number(await server.prints(/tcp:\/\/127\.0\.0\.1:(\d+)/)), '127.0.0.1');
  lines.write('Write a note: "buy tea"\n');
  t.match(String((await once(lines, 'data'))[0]), /Noted\./);
  lines.write(`${'x'.repeat(10)}\n`);
  t.match(String((await once(lines, 'data'))[0]), /This conversation has more than 2 messages/, 'the same session');

  t.equal(await server.stop(), 0);
  const metered = server.stderr.split('\n').filter((line) => line.includes('"msg":"turn"'));
  t.match(
    metered.map((line) => JSON.parse(line)),
    [
      { plugin: '@you/plugboard-plugin-turn-meter', agent: 'lines', read: 1, written: 3 },
      { agent: 'secretary' },
      { agent: 'secretary' },
    ],
  );
});

t.test('the model connector passes its contract suite', async (t) => {
  const module = pathToFileURL(join(await folderOf(t, plugins), 'line-model.ts')).href;
  const { default: plugin } = (await import(module)) as { default: DefinedPlugin };
  const url = await lineServer(t);
  const open = (model: string) => testContext(plugin, { config: { url, model } }).contributed(ModelConnectors);
  modelConnectorContract(t.test, { open: () => open('small'), text: modelRequest('Hello') });
  const refused = open('nobody').stream(modelRequest('Hello'), new AbortController().signal);
  await t.rejects(refused[Symbol.asyncIterator]().next(), { message: 'it answered with status 404.', retryable: false });
});

t.test('the table lists all extension points', async (t) => {
  const homes = {
    '@plugboard/kernel': kernel,
    '@plugboard/kernel/contracts': kernelCli,
    '@plugboard/transport-http': http,
    '@plugboard/transport-chat-completions': chatCompletions,
  };
  const points = Object.entries(homes).flatMap(([home, exported]) =>
    Object.entries(exported).flatMap(([name, value]) => (isPoint(value) ? [`${name} ${value.id} ${home}`] : [])),
  );
  const shown = plugins.table('point').map((cells) => cells.slice(0, 3).join(' '));
  t.strictSame(shown.toSorted(), points.toSorted());
});

/**
 * The model server of writing-plugins.md, which answers with lines of JSON. It repeats the last
 * message.
 */
async function lineServer(t: Test): Promise<string> {
  const server = createServer(async (request, response) => {
    const { model, messages } = JSON.parse(await text(request));
    if (model !== 'small') return response.writeHead(404).end();
    for (const word of ['You ', 'said: ', messages.at(-1).text]) {
      response.write(`${JSON.stringify({ text: word })}\n`);
      await setImmediate(); // one write per line
    }
    return response.end(`${JSON.stringify({ end: { read: 1, written: 3 } })}\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/generate`;
}

function isPoint(value: unknown): value is ExtensionPoint<unknown> {
  return typeof value === 'object' && value !== null && 'discipline' in value && 'key' in value;
}
