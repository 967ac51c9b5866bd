import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { SseScanner } from '../../src/answer/sse-scanner.js';
import { AnswerTooLarge } from '../../src/failure/answer-too-large.js';

function scan(
  reads: readonly (string | Buffer)[],
  limit = 1000,
): { events: string[]; lines: string[]; rest: string | undefined } {
  const events: string[] = [];
  const lines: string[] = [];
  const scanner = new SseScanner(
    (data) => events.push(data),
    (line) => lines.push(line),
    limit,
  );
  for (const read of reads) scanner.read(Buffer.from(read));
  return { events, lines, rest: scanner.end() };
}

t.test('finds every event of a read, with LF or CR LF', async (t) => {
  t.same(scan(['data: one\n\ndata: two\n\n']), { events: ['one', 'two'], lines: [], rest: undefined });
  t.same(scan(['data: one\r\n\r\ndata: two\r\n\r\n']).events, ['one', 'two']);
  t.same(scan(['data: one\n\r\ndata: two\r\n\n']).events, ['one', 'two']);
});

t.test('one optional space after the colon is not part of the data', async (t) => {
  t.same(scan(['data:one\n\ndata: two\n\ndata:  three\n\ndata:\tfour\n\n']).events, ['one', 'two', ' three', '\tfour']);
});

t.test('joins the data lines of an event with newlines', async (t) => {
  t.same(scan(['data: {\ndata: "a":\ndata:1}\n\n']).events, ['{\n"a":\n1}']);
  t.same(scan(['data\ndata: a\ndata\n\n']).events, ['\na\n']);
});

t.test('passes on lines that are neither data nor comments', async (t) => {
  t.same(scan([': keep-alive\n\nevent: message\nid: 1\ndata: one\n: again\n\n']), {
    events: ['one'],
    lines: ['event: message', 'id: 1'],
    rest: undefined,
  });
  const lines = ['database: no', 'data-x: no', 'da: no', ' data: no', 'DATA: no', '{"a":1}'];
  t.same(scan([`${lines.join('\r\n')}\n\n`]), { events: [], lines, rest: undefined });
});

t.test('skips events without data', async (t) => {
  t.same(scan(['data:\n\ndata\n\ndata: \n\nevent: ping\n\n\n\n\r\n']).events, []);
});

t.test('returns an event without its blank line at the end of the stream', async (t) => {
  t.same(scan(['data: one\n\ndata: two']), { events: ['one'], lines: [], rest: 'two' });
  t.same(scan(['data: one\n']), { events: [], lines: [], rest: 'one' });
  t.same(scan(['data: a\ndata: b\r\n']).rest, 'a\nb');
  t.same(scan(['data: one\n\n: bye']).rest, undefined);
  t.same(scan([]).rest, undefined);
});

t.test('replaces invalid UTF-8 and finds the events after it', async (t) => {
  const bytes = Buffer.concat([Buffer.from('data: a'), Buffer.from([0xff, 0xe2, 0x82]), Buffer.from('\n\ndata: b\n\n')]);
  t.same(scan([bytes]).events, ['a\ufffd\ufffd', 'b']);
  t.same(scan([Buffer.from([...Buffer.from('data: a'), 0xe2])]).rest, 'a\ufffd');
});

t.test('refuses an event over the limit, in one line or in many, complete or not', async (t) => {
  for (const reads of [['data: 5678901\n'], ['data: 56', '789', '01'], ['data:6\ndata:23\n'], [': comment', ' without end']]) {
    t.throws(() => scan(reads, 12), AnswerTooLarge);
  }
  t.same(scan(['data: 567890\n\n', 'data: ', '567890', '\n\n', ': a\n: b\n: c\n: d\n\n'], 12).events, ['567890', '567890']);
});

/** Lines as servers write them, and some unusual ones. */
const line = fc.oneof(
  fc
    .tuple(fc.constantFrom('data: ', 'data:', 'data'), fc.string({ unit: 'binary', maxLength: 12 }))
    .map(([name, value]) => name + value),
  fc.constantFrom('', '', ': comment', 'event: x', 'data: é😀', 'data: {"a":"\\n"}'),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const stream = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\n', '\r\n')), { maxLength: 20 })
  .map((lines) => Buffer.from(lines.map(([text, end]) => text.replaceAll(/[\r\n]/g, '') + end).join('')));

/** The events according to the specification, read from the whole text. */
function expected(text: string): string[] {
  const events: string[] = [];
  let data: string[] = [];
  for (const line of text.split(/\r?\n/).slice(0, -1)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (line === '') {
      if (data.join('\n') !== '') events.push(data.join('\n'));
      data = [];
    } else if (name === 'data') data.push(line === 'data' ? '' : (value ?? ''));
  }
  return events;
}

t.test('R-035 finds the same events however the reads cut the stream', async () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(40)), (bytes, sizes) => {
      const reads: Buffer[] = [];
      let from = 0;
      for (const size of sizes) {
        reads.push(bytes.subarray(from, from + size));
        from += size;
      }
      reads.push(bytes.subarray(from));
      assert.deepEqual(scan(reads, 100_000).events, expected(bytes.toString()));
    }),
    { numRuns: 1000 },
  );
});
