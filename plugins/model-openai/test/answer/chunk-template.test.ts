import t from 'tap';
import { ChunkTemplate } from '../../src/answer/chunk-template.js';

const HEAD = '{"id":"x","choices":[{"index":0,"delta":{"content":"';
const TAIL = '"},"finish_reason":null}],"usage":null}';
const PADDED = '"},"finish_reason":null}],"usage":null,"obfuscation":"';

/** Matches a chunk against a template. */
function match(template: ChunkTemplate | undefined, chunk: string) {
  const found = template?.match(chunk);
  return found && { json: found.json, text: found.text };
}

t.test('returns the escaped content of a chunk that differs in nothing else', async (t) => {
  const template = ChunkTemplate.derive(`${HEAD}Hello${TAIL}`, 'Hello');
  t.same(match(template, `${HEAD} there${TAIL}`), { json: ' there', text: ' there' });
  t.same(match(template, `${HEAD}é€😀${TAIL}`), { json: 'é€😀', text: 'é€😀' });
  t.same(match(template, `${HEAD}\\"\\n\\u00e9\\\\${TAIL}`), { json: '\\"\\n\\u00e9\\\\', text: '"\né\\' });
  t.same(match(template, `${HEAD}\\/\\b\\f\\r\\t\\ud83d\\ude00${TAIL}`), {
    json: '\\/\\b\\f\\r\\t\\ud83d\\ude00',
    text: '/\b\f\r\t😀',
  });
  t.equal(match(template, `${HEAD}a\\ud83d${TAIL}`), undefined, 'the first half of a character');
  t.same(match(template, `${HEAD}"},\\"content\\":\\"${TAIL}`), undefined);
  t.same(match(template, `${HEAD}{\\"content\\":\\"x\\"}${TAIL}`), { json: '{\\"content\\":\\"x\\"}', text: '{"content":"x"}' });
});

t.test('does not match a chunk that differs in anything else', async (t) => {
  const template = ChunkTemplate.derive(`${HEAD}Hello${TAIL}`, 'Hello');
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
    t.equal(match(template, event), undefined, event);
  }
});

t.test('does not match an empty or invalid JSON string', async (t) => {
  const template = ChunkTemplate.derive(`${HEAD}Hello${TAIL}`, 'Hello');
  for (const content of ['', '\n', '\t', '\u0000', '\\x', '\\u12', '\\u12g4', '\\uD', '\\', 'a\\']) {
    t.equal(match(template, `${HEAD}${content}${TAIL}`), undefined, JSON.stringify(content));
  }
});

t.test('skips padding of any length in the last member', async (t) => {
  const template = ChunkTemplate.derive(`${HEAD}Hello${PADDED}abc"}`, 'Hello');
  for (const padding of ['', 'x', 'something longer é']) t.equal(match(template, `${HEAD}Hi${PADDED}${padding}"}`)?.text, 'Hi');
  for (const rest of [
    `${PADDED}a\\n"}`,
    `${PADDED}a","error":"b"}`,
    `${PADDED}a\n"}`,
    PADDED,
    `${PADDED}"`,
    `${PADDED}" }`,
    TAIL,
  ]) {
    t.equal(match(template, `${HEAD}Hi${rest}`), undefined, rest);
  }
});

t.test('a last member that the parser reads is not padding', async (t) => {
  const event = (error: string) => `${HEAD}Hi"}}],"error":"${error}"}`;
  const template = ChunkTemplate.derive(event(''), 'Hi');
  t.equal(match(template, event(''))?.text, 'Hi');
  t.equal(match(template, event('no')), undefined);
  const nested = (reason: string) => `{"choices":[{"delta":{"content":"Hi"},"finish_reason":"${reason}"}]}`;
  t.equal(match(ChunkTemplate.derive(nested(''), 'Hi'), nested('stop')), undefined);
  const first = (padding: string) => `{"x":"a","choices":[{"delta":{"content":"Hi"}}],"x":"${padding}"}`;
  t.equal(match(ChunkTemplate.derive(first('a'), 'Hi'), first('b')), undefined, 'a duplicate member is not padding');
});

t.test('finds the content at any place and with any spacing', async (t) => {
  const events = [
    (text: string) => `{"choices": [{"delta": {"role": "assistant", "content": "${text}"}}]}`,
    (text: string) => `{"delta":{"content":"no"},"choices":[{"message":{"content":"nor this"},"delta":{"content":"${text}"}}]}`,
    (text: string) => `{"choices":[{"delta":{"content":"no","content" :\t"${text}"}}]}`,
    (text: string) => `{"a \\"content":"no","choices":[{"delta":{"content":"${text}"}}] , "p":"\\"content\\":\\"x"}`,
    (text: string) => `{"ключ":"é","choices":[{"delta":{"content":"${text}"}}]}`,
  ];
  for (const event of events) t.equal(match(ChunkTemplate.derive(event('Hello'), 'Hello'), event('Hi'))?.text, 'Hi', event(''));
  t.equal(ChunkTemplate.derive('{"choices":[{"delta":{"c\\u006fntent":"a"}}],"content":"x"}', 'a'), undefined);
  t.equal(ChunkTemplate.derive('{"choices":[{"message":{"content":"b"}}]}', 'b'), undefined);
});

t.test('is not derived from large chunks', async (t) => {
  const content = 'x'.repeat(9000);
  t.equal(ChunkTemplate.derive(`${HEAD}${content}${TAIL}`, content), undefined);
});
