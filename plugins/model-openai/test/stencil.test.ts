import t from 'tap';
import { Stencil } from '../src/stencil.js';

const HEAD = '{"id":"x","choices":[{"index":0,"delta":{"content":"';
const TAIL = '"},"finish_reason":null}],"usage":null}';
const PADDED = '"},"finish_reason":null}],"usage":null,"obfuscation":"';

/** What a stencil of one event makes of another one. */
function read(stencil: Stencil | undefined, event: string) {
  const found = stencil?.read(event);
  return found && { json: found.json, text: found.text };
}

t.test('cuts the content out of an event that differs in nothing else, as it was escaped', async (t) => {
  const stencil = Stencil.cut(`${HEAD}Hello${TAIL}`, 'Hello');
  t.same(read(stencil, `${HEAD} there${TAIL}`), { json: ' there', text: ' there' });
  t.same(read(stencil, `${HEAD}é€😀${TAIL}`), { json: 'é€😀', text: 'é€😀' });
  t.same(read(stencil, `${HEAD}\\"\\n\\u00e9\\\\${TAIL}`), { json: '\\"\\n\\u00e9\\\\', text: '"\né\\' });
  t.same(read(stencil, `${HEAD}\\/\\b\\f\\r\\t\\ud83d${TAIL}`), { json: '\\/\\b\\f\\r\\t\\ud83d', text: '/\b\f\r\t\ud83d' });
  t.same(read(stencil, `${HEAD}"},\\"content\\":\\"${TAIL}`), undefined);
  t.same(read(stencil, `${HEAD}{\\"content\\":\\"x\\"}${TAIL}`), { json: '{\\"content\\":\\"x\\"}', text: '{"content":"x"}' });
});

t.test('leaves alone what differs in anything else', async (t) => {
  const stencil = Stencil.cut(`${HEAD}Hello${TAIL}`, 'Hello');
  for (const event of [
    `${HEAD.replace('x', 'y')}Hi${TAIL}`,
    `${HEAD}Hi${TAIL.replace('null', '"stop"')}`,
    `${HEAD}Hi${TAIL.replace('"usage":null', '"usage":{}')}`,
    `${HEAD}Hi${TAIL} `,
    ` ${HEAD}Hi${TAIL}`,
    `${HEAD}Hi`,
    HEAD,
    HEAD.slice(0, -1),
    '{}',
    '',
  ]) {
    t.equal(read(stencil, event), undefined, event);
  }
});

t.test('leaves alone what is no JSON string, or an empty one', async (t) => {
  const stencil = Stencil.cut(`${HEAD}Hello${TAIL}`, 'Hello');
  for (const content of ['', '\n', '\t', '\u0000', '\\x', '\\u12', '\\u12g4', '\\uD', '\\', 'a\\']) {
    t.equal(read(stencil, `${HEAD}${content}${TAIL}`), undefined, JSON.stringify(content));
  }
});

t.test('passes over padding in the last member, however long', async (t) => {
  const stencil = Stencil.cut(`${HEAD}Hello${PADDED}abc"}`, 'Hello');
  for (const padding of ['', 'x', 'something longer é']) t.equal(read(stencil, `${HEAD}Hi${PADDED}${padding}"}`)?.text, 'Hi');
  for (const rest of [
    `${PADDED}a\\n"}`,
    `${PADDED}a","error":"b"}`,
    `${PADDED}a\n"}`,
    PADDED,
    `${PADDED}"`,
    `${PADDED}" }`,
    TAIL,
  ]) {
    t.equal(read(stencil, `${HEAD}Hi${rest}`), undefined, rest);
  }
});

t.test('a last member that means something is no padding', async (t) => {
  const event = (error: string) => `${HEAD}Hi"}}],"error":"${error}"}`;
  const stencil = Stencil.cut(event(''), 'Hi');
  t.equal(read(stencil, event(''))?.text, 'Hi');
  t.equal(read(stencil, event('no')), undefined);
  const nested = (reason: string) => `{"choices":[{"delta":{"content":"Hi"},"finish_reason":"${reason}"}]}`;
  t.equal(read(Stencil.cut(nested(''), 'Hi'), nested('stop')), undefined);
  const first = (padding: string) => `{"x":"a","choices":[{"delta":{"content":"Hi"}}],"x":"${padding}"}`;
  t.equal(read(Stencil.cut(first('a'), 'Hi'), first('b')), undefined, 'a member that is there twice is not looked through');
});

t.test('finds the content wherever it is, and however the event is spaced', async (t) => {
  const events = [
    (text: string) => `{"choices": [{"delta": {"role": "assistant", "content": "${text}"}}]}`,
    (text: string) => `{"delta":{"content":"no"},"choices":[{"message":{"content":"nor this"},"delta":{"content":"${text}"}}]}`,
    (text: string) => `{"choices":[{"delta":{"content":"no","content" :\t"${text}"}}]}`,
    (text: string) => `{"a \\"content":"no","choices":[{"delta":{"content":"${text}"}}] , "p":"\\"content\\":\\"x"}`,
    (text: string) => `{"ключ":"é","choices":[{"delta":{"content":"${text}"}}]}`,
  ];
  for (const event of events) t.equal(read(Stencil.cut(event('Hello'), 'Hello'), event('Hi'))?.text, 'Hi', event(''));
  t.equal(Stencil.cut('{"choices":[{"delta":{"c\\u006fntent":"a"}}],"content":"x"}', 'a'), undefined);
  t.equal(Stencil.cut('{"choices":[{"message":{"content":"b"}}]}', 'b'), undefined);
});

t.test('is not cut from large events', async (t) => {
  const content = 'x'.repeat(9000);
  t.equal(Stencil.cut(`${HEAD}${content}${TAIL}`, content), undefined);
});
