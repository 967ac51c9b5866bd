/** Recordings beside other plugins: interceptors before and after `record`, MCP servers, clocks. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { answerOf, saying } from '../support/test-server.js';
import { toolFixtures, WITH_TOOLS } from '../support/with-tools.js';
import { CONFIG, RecordedServer } from './support.js';

/** Interceptors of each kind, that change what passes. */
const HOUSE = `
  import { definePlugin, Interceptors, ToolInterceptors } from '@plugboard/kernel';
  import { ModelInterceptors, TurnError } from '@plugboard/kernel/contracts';
  export default definePlugin({
    name: 'house', apiVersion: 1, summary: 'Changes what passes',
    configSchema: { type: 'object', properties: { rule: { type: 'string', description: 'Said to the model.', default: 'Be kind.' } } },
    register(ctx) {
      const { name } = ctx;
      const { rule } = ctx.config;
      ctx.contribute(Interceptors, (turn, next) => {
        const today = new Date(ctx.clock.now()).toISOString().slice(0, 10);
        const note = { role: 'system', content: name + ': ' + rule + ' It is ' + today + ' in ' + turn.id + ' of ' + turn.requestId };
        return next({ ...turn, messages: [note, ...turn.messages] });
      });
      ctx.contribute(ToolInterceptors, async (call, next) => {
        if (call.tool === 'close' && call.input.ticket === 13) call.postpone();
        if (call.input.ticket === 99) throw new TurnError('forbidden', name + ' refuses ticket 99');
        const output = await next(call);
        return typeof output === 'string' ? name + '(' + output + ')' : output;
      });
      ctx.contribute(ModelInterceptors, (call, next) => {
        if (call.request.messages.some(({ content }) => content === 'forbidden')) throw new TurnError('content_filter', 'no');
        return next(call);
      });
    },
  });
`;

const call = (name: string, ticket: number) => ({ name: `desk__${name}`, arguments: { ticket } });

t.test('interceptors before and after record change the same again', async (t) => {
  const config = CONFIG.replace(
    '{ record: {} }',
    '\n  before: { use: ./house.mjs }\n  record: {}\n  after: { use: ./house.mjs }',
  );
  const server = await RecordedServer.start(t, config, { files: { 'house.mjs': HOUSE } });
  const { app } = server;
  app.models.enqueue({ toolCalls: [call('look', 1), call('fail', 2), call('look', 99)] }, { text: 'Looked.' });
  await app.chat(saying('Look', { session_id: 'one' }));
  await app.chat(saying('forbidden'));
  app.models.enqueue({ toolCalls: [call('close', 13), call('look', 3)] }, { text: 'Closed.' });
  const asked = answerOf(await app.chat(saying('Close 13', { session_id: 'two' })));
  const answered = await app.chat(saying(`approve ${/approve ([A-Z2-9]{6})/.exec(asked)?.[1]}`, { session_id: 'two' }));
  t.equal(answerOf(answered), 'Closed.');
  const [first] = await server.recordings(4);
  t.match(app.models.requests[1]?.body.messages.at(-3), { content: /^before\(after\(ticket 1, look \d\)\)$/ });
  t.match(first?.tools[0], { output: /^after\(ticket 1/ });
  const { changes, code } = await server.rehearse();
  t.strictSame({ changes, code }, { changes: [], code: 0 });
  const after = await server.rehearse((text) =>
    text.replace('after: { use: ./house.mjs }', 'after: { use: ./house.mjs, rule: Be firm. }'),
  );
  t.strictSame(after.kinds, { prompt: 3 });
});

t.test('an MCP server is not started to replay its tools', async (t) => {
  const config = `${WITH_TOOLS}plugins: { record: {} }\n`;
  const server = await RecordedServer.start(t, config, toolFixtures);
  const { app } = server;
  app.models.enqueue(
    { toolCalls: [{ name: 'files__read_text_file', arguments: { path: 'treasure.txt' } }] },
    { text: 'Found it.' },
  );
  t.equal(answerOf(await app.chat(saying('Read it'))), 'Found it.');
  await server.files(1);
  const offline = (text: string) => text.replace(/command: "[^"]*"/, 'command: /does/not/exist');
  const { code, changes } = await server.rehearse(offline);
  t.strictSame({ code, changes }, { code: 0, changes: [] });
});

t.test('a budget that is spent ends the same turns, and those that it refused are left out', async (t) => {
  const config = CONFIG.replace(
    '{ record: {} }',
    `
  usage: { prices: { fast: { input: 1, output: 1 }, other: { input: 1, output: 1 } }, budgets: [{ amount: 0.00001, per: total }] }
  record: {}`,
  );
  const server = await RecordedServer.start(t, config);
  const usage = { promptTokens: 1000, completionTokens: 1000 };
  server.app.models.respond(({ body }) =>
    body.messages.at(-1)?.role === 'tool' ? { text: 'x', usage } : { toolCalls: [call('look', 1)], usage },
  );
  await server.app.chat(saying('one'));
  t.equal((await server.app.chat(saying('two'))).status, 429);
  const [first, second] = await server.recordings(2);
  t.match([first?.end, second?.end], [{ status: 'length', limit: 'budget' }, { status: 'insufficient_quota' }]);
  const asked = server.app.models.requests.length;
  const leftOut = 'plugboard: 1 turn was left out: a budget refused it before a model answered';
  const both = await server.run('rehearse');
  t.match(both, { code: 0, output: /^1 turn: 1 same, 0 changed, 0 failed\n/, notes: leftOut });
  const [older = '', newer = ''] = await server.files(2);
  await rm(join(server.folder, older));
  const live = await server.run('rehearse', ['--live', '--json'], (text) =>
    text.replaceAll('http://127.0.0.1:9/v1', server.app.models.url),
  );
  t.match(live, { code: 78, output: '', notes: /^plugboard: 1 turn was left out.*\n.*recordings has no turn to rehearse$/ });
  const replayed = await server.run('replay', [join(server.folder, newer)]);
  t.match(replayed, { code: 78, output: '', notes: /has nothing to replay: a budget refused the turn before a model answered$/ });
  t.equal(server.app.models.requests.length, asked);
});
