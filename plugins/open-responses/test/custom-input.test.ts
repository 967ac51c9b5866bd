import fc from 'fast-check';
import t from 'tap';
import { CustomInput, customArguments } from '../src/tools/custom-input.js';

function read(...pieces: readonly string[]): readonly string[] {
  const input = new CustomInput();
  return [...pieces.map((piece) => input.add(piece)), input.end()];
}

/** Cuts a text at these places. */
function cut(text: string, places: readonly number[]): readonly string[] {
  const ends = [...new Set(places.map((place) => place % (text.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...ends].map((start, index) => text.slice(start, [...ends, text.length][index]));
}

t.test('CL-3 any text comes through, however its arguments are cut and escaped', async (t) => {
  const places = fc.array(fc.nat(400), { maxLength: 12 });
  const texts = fc.string({ unit: 'grapheme', maxLength: 60 });
  fc.assert(
    fc.property(texts, places, fc.boolean(), (text, at, isAscii) => {
      const json = customArguments(text);
      const sent = isAscii ? json.replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`) : json;
      const pieces = read(...cut(sent, at));
      if (pieces.some((piece) => !piece.isWellFormed())) throw new Error(`half a character in ${JSON.stringify(pieces)}`);
      return pieces.join('') === text;
    }),
  );
  t.pass();
});

t.test('CL-3 the input is read as it comes', async (t) => {
  t.same(read('{"inp', 'ut": "*** Be', 'gin\\', 'nPatch \\ud83d', '\\ude00', '"', '}'), [
    '',
    '*** Be',
    'gin',
    '\nPatch ',
    '😀',
    '',
    '',
    '',
  ]);
});

t.test('arguments in another form are read at the end', async (t) => {
  t.same(read('{"other":1,', '"input":"x"}'), ['', '', 'x']);
  t.same(read('plain', ' text'), ['', '', 'plain text']);
  t.same(read('{"input":7}'), ['', '{"input":7}']);
  t.same(read('{"input":"cut off \\u00'), ['cut off ', '']);
  t.same(read(' '.repeat(300), '{"input":"x"}'), ['', '', 'x']);
});
