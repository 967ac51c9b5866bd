import assert from 'node:assert/strict';
import type { ModelEvent } from '@plugboard/kernel';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import fc from 'fast-check';
import t from 'tap';
import { rounds } from '../../../../test/support/rounds.js';
import { AnswerParser } from '../../src/answer/answer-parser.js';
import { EventStream } from '../../src/answer/event-stream.js';
import { Failures } from '../../src/failure/failures.js';
import { Redactor } from '../../src/failure/redactor.js';
import { plain } from '../connection.js';

const RUNS = rounds({ short: 1_500, long: 5_000, soak: 50_000 });
const PLAIN = { tools: [], fingerprint: 'm', keepsReasoning: 'never', splitThinkTags: false } as const;
const failures = new Failures(new Redactor([]), new ManualClock(), { idleTimeout: '1s', connectTimeout: '1s' });

function parser(): AnswerParser {
  return new AnswerParser({ failures, ids: new SequentialIds(), ...PLAIN });
}

/** Reads a stream as the plugin does. */
function fastPath(reads: readonly Buffer[]) {
  const stream = new EventStream(parser(), failures);
  return outcome((events) => {
    for (const read of reads) stream.read(read, events);
    stream.end(events);
  });
}

/** Reads a stream the simple way: splits it into lines, and parses the data of each event. */
function slowPath(bytes: Buffer) {
  const answer = parser();
  return outcome((events) => {
    let data: string[] = [];
    let isError = false;
    let isDone = false;
    let stray: string | undefined;
    const take = (text: string) => {
      if (isDone) return;
      if (text.trim() === '[DONE]') {
        isDone = true;
        answer.end('done', events, stray);
      } else if (isError) throw failures.reported(errorOf(text) ?? text);
      else if (isJson(text)) answer.add(JSON.parse(text), events);
      else if (text.trim() === '' || /^ *(:|ping$)/.test(text) || answer.isFinished) return;
      else if (/^ *data:/.test(text)) take(text.replace(/^ *data:/, ''));
      else throw failures.unreadable('an event that is not JSON', { text, hasBegun: answer.hasBegun });
    };
    const lines = bytes
      .toString()
      .replace(/^\ufeff/, '')
      .split('\n');
    for (const [index, ended] of lines.entries()) {
      const isLast = index === lines.length - 1;
      const line = ended.replace(/\r$/, '');
      if (line.startsWith('data:')) data.push(line.slice('data:'.length).replace(/^ /, ''));
      else if (line.startsWith('event:')) isError = line === 'event: error';
      else if (line.startsWith('error:') && !isDone) throw failures.reported(errorOf(line.slice('error:'.length)));
      else if (isJson(line) && !isDone) answer.add(JSON.parse(line), events);
      else if (line !== '' && !line.startsWith(':') && !line.startsWith('id:')) stray ??= line;
      const text = data.join('\n');
      if (line === '' && !isLast) {
        data = [];
        if (text !== '') take(text);
      } else if (isLast && (isJson(text) || text.trim() === '[DONE]')) take(text);
    }
    if (!isDone) answer.end('cut', events, stray);
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function errorOf(text: string): unknown {
  return isJson(text) ? (JSON.parse(text)?.error ?? JSON.parse(text) ?? undefined) : undefined;
}

function outcome(run: (events: ModelEvent[]) => void) {
  const events: ModelEvent[] = [];
  let error: string | undefined;
  try {
    run(events);
  } catch (thrown) {
    error = String(thrown);
  }
  for (const event of events) {
    if (event.type === 'text' && event.json !== undefined) assert.equal(JSON.parse(`"${event.json}"`), event.text);
  }
  return { events: events.map(plain), error };
}

const SHAPES = [
  (delta: object, more: object) => ({ id: 'x', choices: [{ index: 0, delta, finish_reason: null }], ...more }),
  (delta: object, more: object) => ({
    id: 'x',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
    usage: null,
    ...more,
  }),
  (delta: object, more: object) => ({ choices: [{ delta }], ...more, obfuscation: 'a'.repeat(JSON.stringify(delta).length % 5) }),
];

const word = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom('', 'é', '😀', '"', '\\', '\n', '{"content":"x"}', '\u2028', '\ud83d'),
);
const delta = fc.oneof(
  { weight: 8, arbitrary: fc.record({ content: word }) },
  fc.record({ role: fc.constant('assistant'), content: word }),
  fc.record({ content: word, refusal: fc.option(word) }),
  fc.record({ reasoning_content: word }),
  fc.record({
    content: fc.constant(null),
    tool_calls: fc.constant([{ index: 0, id: 'a', function: { name: 'f', arguments: '{' } }]),
  }),
  fc.constant({}),
  fc.constantFrom(
    { content: [{ type: 'text', text: 'part' }] },
    { function_call: { name: 'f', arguments: '{}' } },
    { tool_calls: [{ index: 1, id: 'b', function: { name: 'g', arguments: { a: 1 } } }] },
    { thinking: 'hm' },
  ),
);
const more = fc.oneof(
  { weight: 8, arbitrary: fc.constant({}) },
  fc.constantFrom(
    { error: null },
    { error: '' },
    { error: 'no' },
    { error: { message: 'no' } },
    { usage: { prompt_tokens: 1 } },
    { x_groq: { usage: { prompt_tokens: 2 } } },
    { x_groq: { error: 'over capacity' } },
    { timings: { predicted_n: 3 } },
    { base_resp: { status_code: 1002, status_msg: 'rate limit' } },
    { p: 'ab' },
    { p: 'é' },
  ),
);
const rawEvent = fc.constantFrom(
  '{',
  '[]',
  '"x"',
  'null',
  '{"choices":[]}',
  '{"choices":[{"delta":{"content":"\\x"}}]}',
  '{"choices":[{"delta":{},"error":{"message":"no"}}]}',
  '{"choices":[{"delta":{"content":"x"},"usage":{"prompt_tokens":4}}]}',
  '{"choices":[{"text":"old"}]}',
  '{"code":500,"message":"no"}',
  '{"object":"error"}',
  '[{"choices":[{"delta":{"content":"x"}}]}]',
  ': OPENROUTER PROCESSING',
  'ping',
  'data: {"choices":[{"delta":{"content":"x"}}]}',
  '[DONE]',
  ' [DONE] ',
);

/** JSON in the styles of different servers. */
function stringify(value: unknown, style: number): string {
  if (style === 0) return JSON.stringify(value);
  if (style === 1) return JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ');
  return JSON.stringify(value).replaceAll(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const stream = fc
  .record({
    shape: fc.constantFrom(...SHAPES),
    style: fc.nat(2),
    space: fc.constantFrom('', ' ', '  '),
    mark: fc.constantFrom('', '\ufeff'),
    newline: fc.constantFrom('\n', '\r\n'),
    events: fc.array(fc.oneof({ weight: 12, arbitrary: fc.tuple(delta, more) }, rawEvent), { maxLength: 12 }),
    between: fc.constantFrom('', ': keep-alive', 'event: message', 'id: 7', 'stray words'),
    aside: fc.option(
      fc.constantFrom(
        'event: error',
        'error: {"message":"no"}',
        '{"error":{"message":"bare"}}',
        '{"choices":[{"delta":{"content":"y"}}]}',
      ),
      { freq: 12 },
    ),
    finish: fc.constantFrom('stop', 'MAX_TOKENS', 'eos', 'abort', 'tool_calls', ''),
    ending: fc.constantFrom('finish', 'finish and done', 'done', 'nothing', 'torn'),
  })
  .map(({ shape, style, space, mark, newline, events, between, aside, finish: finish_reason, ending }) => {
    const frames = events.map((event) => (typeof event === 'string' ? event : stringify(shape(...event), style)));
    const finish = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason }] });
    if (ending.startsWith('finish')) frames.push(finish);
    if (ending.endsWith('done')) frames.push('[DONE]');
    const framed = frames.map((frame) => `${between === '' ? '' : between + newline}data:${space}${frame}${newline}${newline}`);
    if (aside) framed.splice(framed.length >> 1, 0, `${aside}${newline}`);
    return Buffer.from(mark + framed.join('') + (ending === 'torn' ? `data:${space}${finish.slice(0, 20)}` : ''));
  });

t.test('R-035 the fast path equals JSON.parse, however the reads cut the stream', async () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(60)), (bytes, sizes) => {
      const reads: Buffer[] = [];
      let from = 0;
      for (const size of sizes) {
        reads.push(bytes.subarray(from, from + size));
        from += size;
      }
      reads.push(bytes.subarray(from));
      assert.deepEqual(fastPath(reads), slowPath(bytes));
    }),
    { numRuns: RUNS },
  );
});

t.test('R-035 any bytes produce events or a ModelError', async () => {
  const fragment = fc.oneof(
    fc.uint8Array({ maxLength: 20 }),
    fc
      .constantFrom(
        'data: ',
        '\n\n',
        '\r\n',
        '{"choices":[{"delta":{"content":"',
        '"}}]}',
        '[DONE]',
        '\\u',
        '{"error":',
        '"tool_calls":[{',
        '}',
      )
      .map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 20 }), (fragments) => {
      const { error } = fastPath(fragments.map((bytes) => Buffer.from(bytes)));
      assert.ok(error === undefined || error.startsWith('ModelError: '), error);
    }),
    { numRuns: RUNS },
  );
});

function chunk(delta: object, rest: object = {}): Buffer {
  return Buffer.from(`data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`);
}

/** The events of a stream, unread. */
function textsOf(frames: readonly Buffer[]): ModelEvent[] {
  const events: ModelEvent[] = [];
  const stream = new EventStream(parser(), failures);
  for (const frame of frames) stream.read(frame, events);
  return events;
}

t.test('text keeps its escaping from the second chunk on', async (t) => {
  const texts = textsOf(['a', 'b\n', 'c"'].map((content) => chunk({ content })));
  t.same(
    texts.map((event) => event.type === 'text' && event.json),
    [undefined, 'b\\n', 'c\\"'],
  );
  t.same(
    texts.map((event) => event.type === 'text' && event.text),
    ['a', 'b\n', 'c"'],
  );
});

t.test('derives a new template when chunks change, until too many were unused', async (t) => {
  const isFast = (frames: readonly Buffer[]) => textsOf(frames).map((event) => event.type === 'text' && event.json !== undefined);
  const at = (created: number) => chunk({ content: 'a' }, { created });
  t.same(isFast([1, 1, 2, 2, 2, 3, 3].map(at)), [false, true, false, true, true, false, true]);
  t.same(isFast([1, 2, 3, 4, 4, 4, 4].map(at)), [false, false, false, false, true, true, true]);
  t.same(isFast([1, 2, 3, 4, 5, 5, 5].map(at)), [false, false, false, false, false, false, false]);
});

t.test('C-111 a character that is escaped in two halves, and cut between them, is one piece', async (t) => {
  const chunk = (delta: string) => `data: {"choices":[{"index":0,"delta":${delta}}]}\n\n`;
  const content = (json: string) => chunk(`{"content":"${json}"}`);
  const end = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  const texts = (pieces: readonly string[], type = 'text') => {
    const { events } = fastPath([Buffer.from(pieces.join('') + end)]);
    return events.flatMap((event) => (event.type === type && 'text' in event ? [event.text] : []));
  };
  const halves = ['a', 'b', 'c\\ud83d', '\\ude00d', '\\uD83D', '\\uDE00', 'e', '\\\\ud83d', 'f'];
  t.same(texts(halves.map(content)), ['a', 'b', 'c', '😀d', '😀', 'e', '\\ud83d', 'f']);
  t.same(texts(['\\ud83d', '\\ude00'].map(content)), ['😀'], 'from the first chunk on');
  t.same(texts(['x', '\\ud83d'].map(content)), ['x', '\ufffd'], 'nothing follows the half');
  const reasoning = ['\\ud83d', '\\ude00'].map((json) => chunk(`{"reasoning_content":"${json}"}`));
  t.same(texts([...reasoning, content('x')], 'reasoning'), ['😀']);
  const many = Array.from({ length: 20 }, () => [content('\\ud83d'), content('\\ude00')]).flat();
  t.same(texts([content('a'), ...many, content('b')]), ['a', ...Array<string>(20).fill('😀'), 'b']);
});
