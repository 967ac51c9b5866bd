/** What a changed configuration changes in recorded turns. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { saying } from '../support/test-server.js';
import { RecordedServer, type RehearsalJson, type ReplayJson } from './support.js';

const server = await RecordedServer.start(t);
const { app, folder } = server;
app.models.enqueue(
  { toolCalls: [{ name: 'desk__look', arguments: { ticket: 7 } }] },
  { text: 'Ticket 7 is open.' },
  { text: 'Hello!' },
);
await app.chat(saying('Look at 7'));
await app.chat(saying('Hello'));
const [withTool = '', plain = ''] = await server.files(2);

/** The kinds and steps of the changes of both turns, the older first. */
async function kinds(change: (config: string) => string): Promise<readonly (readonly string[])[]> {
  const { changes } = await server.rehearse(change);
  return [withTool, plain].map((name) =>
    (changes.find(({ file }) => file.endsWith(name))?.changes ?? []).map(({ kind, step }) => `${kind} ${step}`),
  );
}

const CASES: readonly (readonly [what: string, change: (config: string) => string, older: string[], newer: string[]])[] = [
  ['one word of the prompt', (config) => config.replace('careful', 'quick'), ['prompt 1'], ['prompt 1']],
  ['no prompt', (config) => config.replace('    system: You are the careful assistant.\n', ''), ['prompt 1'], ['prompt 1']],
  ['a parameter', (config) => config.replace('0.2', '0.7'), ['params 1'], ['params 1']],
  ['another model of a connection', (config) => config.replace('big-1', 'big-2'), ['model 1'], ['model 1']],
  ['another order of the connections', (config) => config.replace('[fast, other]', '[other, fast]'), ['model 1'], ['model 1']],
  ['another connection', (config) => config.replace('[fast, other]', 'other'), ['model 1'], ['model 1']],
  [
    'fewer tools',
    (config) => config.replace('tools: [desk]', 'tools: [desk/look, desk/fail, desk/hang]'),
    ['tools 1'],
    ['tools 1'],
  ],
  [
    'an entry of another name',
    (config) =>
      config
        .replaceAll('desk: {', 'counter: {')
        .replaceAll(/\[desk(\b)/g, '[counter$1')
        .replaceAll(', desk/', ', counter/'),
    ['tools 1', 'calls 1', 'messages 2'],
    ['tools 1'],
  ],
  ['no tools', (config) => config.replace('    tools: [desk]\n', ''), ['tools 1', 'calls 1', 'messages 2'], ['tools 1']],
  [
    'a call that now needs approval',
    (config) => config.replace('tools: [desk]', 'tools: [desk]\n    approve: [desk/look]'),
    ['calls 1', 'messages 2'],
    [],
  ],
  [
    'a lower limit',
    (config) => config.replace('tools: [desk]', 'tools: [desk]\n    maxSteps: 1'),
    ['calls 1', 'calls 2', 'answer 1', 'status 1'],
    [],
  ],
  [
    'an agent that is gone',
    (config) => config.replaceAll('assistant:', 'helper:').replace('defaultAgent: assistant', 'defaultAgent: helper'),
    ['status 0'],
    ['status 0'],
  ],
];

for (const [what, change, older, newer] of CASES) {
  t.test(`${what} changes ${[...new Set([...older, ...newer].map((one) => one.split(' ')[0]))].join(', ')}`, async (t) => {
    t.strictSame(await kinds(change), [older, newer]);
  });
}

t.test('a changed schema of a tool changes the tools', async (t) => {
  const path = join(app.started.folder, 'desk.mjs');
  const text = await readFile(path, 'utf8');
  await writeFile(join(app.started.folder, 'desk2.mjs'), text.replace('Its number.', 'The number of the ticket.'));
  const { changes, kinds: counts } = await server.rehearse((config) => config.replace('./desk.mjs', './desk2.mjs'));
  t.strictSame(counts, { tools: 2 });
  t.match(changes[0]?.changes, [
    { kind: 'tools', step: 1, before: [{ inputSchema: { properties: { ticket: { description: 'Its number.' } } } }] },
  ]);
  t.match(changes[0]?.changes[0]?.after, [
    { inputSchema: { properties: { ticket: { description: 'The number of the ticket.' } } } },
  ]);
});

t.test('replay prints nothing but that nothing changed, or the changes by step', async (t) => {
  const path = join(folder, withTool);
  t.match(await server.run('replay', [path]), { code: 0, output: /^turn_\w+ of assistant, 20\S+Z: nothing changed$/ });
  const { code, output } = await server.run('replay', [path], (config) =>
    config.replace('You are the careful assistant.', '"You are the \\e[31mcareful assistant."'),
  );
  t.equal(code, 1);
  t.match(output, /^turn_\w+ of assistant, \S+Z:\n {2}step 1 {2}prompt {4}- You are the careful/);
  t.notOk(output.includes('\u001b'));
  const json = await server.run('replay', [path, '--json'], (config) => config.replace('careful', 'quick'));
  const parsed = JSON.parse(json.output) as ReplayJson;
  t.match(parsed, {
    turn: /^turn_/,
    agent: 'assistant',
    changed: true,
    changes: [{ kind: 'prompt', step: 1, before: 'You are the careful assistant.', after: 'You are the quick assistant.' }],
  });
  t.strictSame(Object.keys(parsed), ['turn', 'agent', 'changed', 'changes']);
});

t.test('rehearse counts, and ends with 1 where something changed', async (t) => {
  t.match(await server.run('rehearse'), { code: 0, output: '2 turns: 2 same, 0 changed, 0 failed' });
  const changed = await server.run('rehearse', [], (config) => config.replace('careful', 'quick'));
  t.match(changed, { code: 1, output: /\n2 turns: 0 same, 2 changed \(prompt 2\), 0 failed$/ });
  const last = await server.run('rehearse', ['--last', '1', '--json']);
  t.match(JSON.parse(last.output) as RehearsalJson, { turns: 1, same: 1 });
});

t.test('a rehearsal without a turn is 78, and names the agent that was asked for', async (t) => {
  const nothing = (agent: string) => server.run('rehearse', ['--agent', agent, '--json']);
  const ops = /data\/recordings has no turn of the agent "ops" to rehearse; known: "assistant"$/;
  t.match(await nothing('ops'), { code: 78, output: '', notes: ops });
  t.match(await nothing('asistant'), { code: 78, output: '', notes: /"asistant" to rehearse, did you mean "assistant"\?$/ });
});

t.test('a file or a folder that cannot be read is 78, with a sentence', async (t) => {
  const write = async (name: string, text: string) => {
    const path = join(app.started.folder, name);
    await writeFile(path, text);
    return path;
  };
  const text = await readFile(join(folder, withTool), 'utf8');
  const deep = `{"type":"turn","version":1,"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
  const files: readonly (readonly [string, string, RegExp])[] = [
    ['cut.jsonl', text.slice(0, text.length / 2), /cut\.jsonl is cut in line \d+$/],
    ['garbage.jsonl', '\u0000\ufffd{', /garbage\.jsonl is not a recording: line 1: it is not JSON$/],
    [
      'version.jsonl',
      text.replace('"version":1', '"version":9'),
      /has the version 9 of the format, and this program reads version 1$/,
    ],
    ['deep.jsonl', deep, /deep\.jsonl is not a recording: /],
    ['long.jsonl', 'x'.repeat(30_000_000), /it is not JSON$/],
  ];
  for (const [name, content, message] of files) {
    const result = await server.run('replay', [await write(name, content)]);
    t.match(result, { code: 78, output: '', notes: message }, name);
    t.equal(result.notes.split('\n').length, 1, name);
  }
  t.match(await server.run('replay', [join(folder, 'none.jsonl')]), { code: 78, notes: /none\.jsonl does not exist$/ });
  t.match(await server.run('replay', [folder]), { code: 78, notes: /is not a file$/ });
  t.match(await server.run('rehearse', ['--from', '/nowhere/at/all']), { code: 78, notes: /does not exist; name the folder/ });
  t.match(await server.run('rehearse', ['--from', app.started.folder]), { code: 78, notes: /has no recordings$/ });
  await t.rejects(server.run('rehearse', ['--last', '0']), { name: 'UsageError', message: /at least 1, not "0"/ });
});

t.test('a rehearsal names a file that cannot be read, goes on, and ends with 78, also if turns changed', async (t) => {
  const broken = join(folder, '20200101T000000000Z-turn_old.jsonl');
  const text = await readFile(join(folder, plain), 'utf8');
  await writeFile(broken, text.slice(0, text.length / 2));
  const { code, output, notes } = await server.run('rehearse', ['--json']);
  const failures = [{ file: broken, reason: /^is cut in line \d+$/ }];
  t.match(JSON.parse(output) as RehearsalJson, { turns: 3, same: 2, changed: 0, failed: 1, failures });
  t.equal(code, 78);
  t.match(notes, /turn_old\.jsonl is cut in line \d+$/);
  const changed = await server.run('rehearse', [], (config) => config.replace('careful', 'quick'));
  t.match(changed, { code: 78, output: /3 turns: 0 same, 2 changed \(prompt 2\), 1 failed$/, notes: /turn_old\.jsonl is cut/ });
});

t.test('a configuration with mistakes is refused with its lines', async (t) => {
  const path = join(folder, withTool);
  await t.rejects(
    server.run('replay', [path], (config) => config.replace('model: [fast, other]', 'modle: fast')),
    {
      name: 'ConfigError',
      message: /other\.yaml:\d+:\d+ agents\.assistant\.modle: unknown option, did you mean "model"\?/,
    },
  );
});
