import t, { type Test } from 'tap';
import { entry, fixture } from './entry.js';

/** A fixture that runs. */
async function started(t: Test, ...args: string[]) {
  const files = entry(t, fixture(...args));
  await files.start();
  return files;
}

t.test('a call runs the tool with its arguments, and several run at the same time', async (t) => {
  const files = await started(t);
  const said = await Promise.all(['one', 'two', 'three'].map((text) => files.text('echo', { text })));
  t.strictSame(said, ['one', 'two', 'three']);
});

t.test('texts and images of a result are unchanged; other content is described by kind and size', async (t) => {
  const files = await started(t);
  const content = [
    { type: 'text', text: '  as it stands\n' },
    { type: 'image', data: 'iVBORw==', mimeType: 'image/png' },
    { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' },
    { type: 'resource', resource: { uri: 'file:///a.txt', text: 'of a file' } },
    { type: 'resource', resource: { uri: 'file:///a.pdf', blob: 'JVBERi0x', mimeType: 'application/pdf' } },
    { type: 'resource_link', uri: 'file:///b.txt', name: 'b', mimeType: 'text/plain', size: 12 },
    { type: 'hologram', depth: 3 },
  ];
  t.strictSame(await files.call('answer', { result: { content } }), {
    content: [
      { type: 'text', text: '  as it stands\n' },
      { type: 'image', data: 'iVBORw==', mimeType: 'image/png' },
      { type: 'other', kind: 'audio/wav', bytes: 4 },
      { type: 'text', text: 'of a file' },
      { type: 'other', kind: 'application/pdf', bytes: 6 },
      { type: 'other', kind: 'resource_link text/plain file:///b.txt', bytes: 12 },
      { type: 'other', kind: 'hologram', bytes: 29 },
    ],
    isError: false,
  });
});

t.test('structured content becomes JSON if a result has no other content', async (t) => {
  const files = await started(t);
  const structuredContent = { celsius: 21.5 };
  t.equal(await files.text('answer', { result: { content: [], structuredContent } }), '{"celsius":21.5}');
  t.equal(await files.text('answer', { result: { content: [{ type: 'text', text: 'mild' }], structuredContent } }), 'mild');
});

t.test('an error result stays an error', async (t) => {
  const files = await started(t);
  const content = [{ type: 'text', text: 'no such city' }];
  t.strictSame(await files.call('answer', { result: { content, isError: true } }), { content, isError: true });
});

t.test('an error answer is thrown with the message of the server', async (t) => {
  const files = await started(t);
  const code = 'mcp_call_refused';
  await t.rejects(files.call('refuse', { code: -32602, message: 'the city is missing' }), {
    code,
    message: 'the city is missing',
  });
  await t.rejects(files.call('answerError', { error: { code: -32000, message: '' } }), {
    code,
    message: 'the MCP server of tools.files refused the call without a reason',
  });
});

t.test('secrets of the environment are redacted from error answers', async (t) => {
  const files = entry(t, { ...fixture(), env: { KEY: 'open sesame' } });
  await files.start();
  await t.rejects(files.call('refuse', { code: -32000, message: 'the key open sesame is not valid' }), {
    message: 'the key [redacted] is not valid',
  });
});

t.test('an answer in an unknown form fails the call at once', async (t) => {
  const files = await started(t);
  const message = 'the MCP server sent an invalid JSON-RPC answer';
  await t.rejects(files.call('answer', { result: 'just text' }), { message });
  await t.rejects(files.call('answerError', { error: 'just text' }), { message });
  await t.rejects(files.call('answer', { result: { _meta: 'no object' } }), {
    message: /does not match the schema of MCP|invalid JSON-RPC answer/,
  });
});

t.test('text on standard output that is not a message is ignored', async (t) => {
  const files = await started(t);
  const lines = [
    'Listening on stdio',
    '',
    '{"jsonrpc":"2.0","id":true}',
    '{"jsonrpc":"2.0","id":4711,"result":{}}',
    '[]',
    'null',
  ];
  t.equal(await files.text('print', { lines, times: 500 }), 'printed');
  t.ok(files.lines.some((line) => line.line === 'Listening on stdio' && line.from === 'stdout' && line.level === 'debug'));
  t.ok(files.lines.some((line) => line.msg.startsWith('the MCP server violated the protocol') && line.level === 'debug'));
});

t.test('progress is passed on, with a fraction if the total is known', async (t) => {
  const files = await started(t);
  const reported: unknown[] = [];
  const steps = [
    { progress: 1, total: 4, message: 'reading' },
    { progress: 2, total: 4 },
    { progress: 9, total: 4 },
    { progress: 10 },
    { progress: 1, total: 0 },
  ];
  await files.call('progress', { steps }, { progress: (...args) => void reported.push(args) });
  t.strictSame(reported, [['reading', 0.25], ['2 of 4', 0.5], ['9 of 4', 1], ['10'], ['1 of 0']]);
});

t.test('aborting the signal of a call rejects it with the reason and cancels it at the server', async (t) => {
  const files = await started(t);
  const turn = new AbortController();
  const reason = new Error('the turn has ended');
  const calls = ['first', 'second'].map((label) => files.call('hang', { label }, { signal: turn.signal }));
  await files.logged(/first hangs/);
  await files.logged(/second hangs/);
  turn.abort(reason);
  for (const call of calls) await t.rejects(call, reason);
  t.equal(await files.text('cancelled'), 'first,second');
  await t.rejects(files.call('hang', { label: 'third' }, { signal: turn.signal }), reason, 'a call after the abort is not sent');
});

t.test('aborting a signal after the call has ended sends nothing to the server', async (t) => {
  const files = await started(t);
  const turn = new AbortController();
  await files.call('echo', { text: 'x' }, { signal: turn.signal });
  turn.abort();
  await files.text('echo', { text: 'y' });
  t.notMatch(JSON.stringify(files.lines), /oddly/);
});

t.test('MCP-18 _meta carries the key of a call and its trace headers, and no others', async (t) => {
  const files = await started(t);
  const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=b', 'x-other': 'c' };
  const { progressToken: _, ...meta } = JSON.parse(await files.text('meta', {}, { headers, turnId: 'turn_1', index: 2 }));
  const { traceparent, tracestate } = headers;
  t.strictSame(meta, { traceparent, tracestate, 'plugboard/idempotency-key': 'turn_1/2' });
});

t.test('R-041 arguments that cannot be written as JSON fail the call, and later calls work', async (t) => {
  const files = await started(t);
  let deep: Record<string, unknown> = {};
  for (let i = 0; i < 100_000; i++) deep = { deep };
  await t.rejects(files.call('echo', deep), {
    code: 'mcp_call_refused',
    message: 'the arguments are nested too deeply to be sent',
  });
  await t.rejects(files.call('echo', { text: 1n }), { code: 'mcp_call_refused', message: /BigInt/ });
  t.equal(await files.text('echo', { text: 'still here' }), 'still here');
});

t.test('R-044 a result of 15 MB is passed on; the runtime cuts it', async (t) => {
  const files = await started(t);
  t.equal((await files.text('large', { mib: 15 })).length, 15 * 1024 * 1024);
});

t.test('calling a tool that the server has removed fails', async (t) => {
  const files = await started(t);
  const gone = files.tool('lists');
  await files.call('change', { remove: ['lists'] });
  const signal = new AbortController().signal;
  await t.rejects(async () => gone.run({}, { signal, headers: {}, progress: () => {} } as never), {
    message: 'there is no tool lists',
  });
});
