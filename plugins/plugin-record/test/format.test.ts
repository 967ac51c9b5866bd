import t from 'tap';
import { fileNameOf, isRecordingName } from '../src/format/file-name.js';
import { readRecording, UnreadableRecording } from '../src/format/read-recording.js';
import { attempt, recording, textOf, toolLine, turnLine } from './recordings.js';

/** As JSON has it. */
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

t.test('a recording that was written is read as it was', async (t) => {
  t.strictSame(plain(readRecording(textOf(recording()))), plain(recording()));
});

t.test('a request has only the messages and tools that the one before did not have', async (t) => {
  const lines = textOf(recording())
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  t.strictSame(
    lines.map(({ type }) => type),
    ['turn', 'model_request', 'model_answer', 'model_request', 'model_answer', 'tool', 'end'],
  );
  t.match(lines[3], { kept: 2, messages: [{ role: 'assistant' }, { role: 'tool' }], tools: undefined });
});

t.test('what a connection attached to its answers is in the line of the turn alone', async (t) => {
  const answer = { role: 'assistant', content: 'Hi.', extra: { connection: 'fast', data: 'signature' } } as const;
  const text = textOf(recording({ turn: turnLine({ messages: [answer] }), attempts: [attempt({ messages: [answer] })] }));
  t.equal(text.split('signature').length, 2);
  t.match(text.split('\n')[0], /signature/);
});

t.test('the names of files are in the order of their turns, and other files are not recordings', async (t) => {
  const name = fileNameOf({ at: Date.UTC(2026, 10, 28, 3, 47, 0, 123), id: 'turn_x1' });
  t.equal(name, '20261128T034700123Z-turn_x1.jsonl');
  t.ok(isRecordingName(name));
  t.notOk(isRecordingName('notes.jsonl'));
  t.notOk(isRecordingName(`../${name}`));
  t.equal(fileNameOf({ at: 0, id: '../../etc/passwd' }), '19700101T000000000Z-______etc_passwd.jsonl');
});

const text = textOf(recording());
const lines = text.trimEnd().split('\n');

const FAULTS: readonly (readonly [name: string, text: string, message: RegExp])[] = [
  ['nothing', '', /^is empty$/],
  ['text', 'hello', /^is not a recording: line 1: it is not JSON$/],
  ['another object', '{"name":"x"}', /^is not a recording: line 1: its "type" is unknown$/],
  ['a list', '[1]', /^is not a recording: line 1: its "type" is unknown$/],
  [
    'another version',
    text.replace('"version":1', '"version":2'),
    /^has the version 2 of the format, and this program reads version 1$/,
  ],
  ['no version', text.replace('"version":1,', ''), /^has no version of the format/],
  ['a file that is cut in a line', text.slice(0, text.length - 20), /^is cut in line 7$/],
  ['a file that is cut after a line', `${lines.slice(0, -1).join('\n')}\n`, /^is cut: its line "end" is missing$/],
  ['no first line', lines.slice(1).join('\n'), /line 1: a recording begins with one line "turn"$/],
  ['a second turn', [lines[0], lines[0]].join('\n'), /line 2: a recording begins with one line "turn"$/],
  ['an answer without its request', [lines[0], lines[2]].join('\n'), /line 2: it does not answer the request before it$/],
  [
    'a request without its answer',
    [lines[0], lines[1], lines[6]].join('\n'),
    /line 3: the answer to the request before it is missing$/,
  ],
  ['lines after the end', `${text}${lines[5]}`, /line 8: nothing can follow the line "end"$/],
  [
    'more kept messages than there were',
    text.replace('"kept":2', '"kept":3'),
    /line 4: "kept" is 3, and the request before it has fewer messages$/,
  ],
  ['a message of no role', text.replace('"role":"user"', '"role":"boss"'), /line 1: "messages\[0\]\.role" must be /],
  ['a step that is not a number', text.replace('"step":1', '"step":"1"'), /line 2: "step" must be /],
];

for (const [name, broken, message] of FAULTS) {
  t.test(`a clear sentence says what is wrong with ${name}`, async (t) => {
    t.throws(() => readRecording(broken), { name: 'UnreadableRecording', message });
  });
}

t.test('no text does anything but say what is wrong with it', async (t) => {
  let state = 7;
  const next = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pieces = [
    'null',
    '{}',
    '[]',
    '"',
    '\n',
    '\\u0000',
    '1e999',
    '{"__proto__":{"x":1}}',
    '"end"',
    '\ud800',
    ',',
    '-1',
    'x'.repeat(1000),
  ];
  let read = 0;
  for (let round = 0; round < 3000; round++) {
    let changed = text;
    for (let count = 1 + next(3); count > 0; count--) {
      const start = next(changed.length);
      const piece = next(2) === 0 ? (pieces[next(pieces.length)] ?? '') : changed.slice(next(changed.length)).slice(0, next(200));
      changed = changed.slice(0, start) + piece + changed.slice(start + next(40));
    }
    try {
      readRecording(changed);
      read++;
    } catch (error) {
      if (!(error instanceof UnreadableRecording) || error.message.length > 500) throw error;
    }
  }
  t.ok(read < 3000, 'most are refused');
  t.equal(({} as { x?: number }).x, undefined);
});

t.test('a line may be large', async (t) => {
  const output = 'x'.repeat(20_000_000);
  t.equal(readRecording(textOf(recording({ tools: [toolLine({ output })] }))).tools[0]?.output, output);
  t.throws(() => readRecording('x'.repeat(20_000_000)), UnreadableRecording);
});
