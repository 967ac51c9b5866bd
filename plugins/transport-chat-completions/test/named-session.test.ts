import { ProtocolError } from '@plugboard/openai-protocol';
import t from 'tap';
import { effectiveSources, type KeySource, parseSession } from '../src/request/named-session.js';
import type { CompletionRequest } from '../src/request/request.js';

const ALL: readonly KeySource[] = ['session_id', 'header', 'user'];

/** Lines of one header, as Node hands them over: bytes as Latin-1, several joined. */
function header(...values: string[]) {
  const latin1 = values.map((value) => Buffer.from(value, 'utf8').toString('latin1'));
  return {
    headers: { 'x-session-id': latin1.join(', ') },
    rawHeaders: ['Accept', '*/*', ...latin1.flatMap((v) => ['X-Session-Id', v])],
  };
}

const NO_HEADER = { headers: {}, rawHeaders: [] };

type Sent = ReturnType<typeof header> | typeof NO_HEADER;

function session(fields: Partial<CompletionRequest>, request: Sent = NO_HEADER, from = ALL) {
  return parseSession({ model: 'a', messages: [], ...fields }, request, from);
}

function key(fields: Partial<CompletionRequest>, request: Sent = NO_HEADER, from = ALL) {
  const named = session(fields, request, from);
  if (named && 'conversation' in named) throw new Error(`an opaque id: ${named.conversation}`);
  return named?.key;
}

function fault(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof ProtocolError) return { status: error.status, ...error.body.error };
    throw error;
  }
  throw new Error('nothing was refused');
}

t.test('C-120 to C-124 the table of keys', async (t) => {
  t.equal(key({}), undefined);
  t.equal(key({ user: 'ann' }), 'ann');
  t.equal(key({ session_id: 's1' }), 's1');
  t.equal(key({ user: 'ann', session_id: 's1' }), 'ann:s1');
  t.equal(key({ user: 'same', session_id: 'same' }), 'same');
});

t.test('C-125 a blank value counts as absent', async (t) => {
  for (const blank of ['', ' ', '\t\n', '\u00a0\u2003']) {
    t.equal(key({ user: blank }), undefined);
    t.equal(key({ session_id: blank }), undefined);
    t.equal(key({ user: blank, session_id: blank }), undefined);
    t.equal(key({ user: 'ann', session_id: blank }), 'ann');
    t.equal(key({ user: blank, session_id: 's1' }), 's1');
  }
  t.equal(key({ user: ' ann ' }), ' ann ', 'values are not trimmed');
});

t.test('C-126 the header sets the session id unless the field does', async (t) => {
  t.equal(key({}, header('s1')), 's1');
  t.equal(key({ user: 'ann' }, header('s1')), 'ann:s1');
  t.equal(key({ session_id: 'body' }, header('head')), 'body');
  t.equal(key({ session_id: ' ' }, header('head')), 'head');
  t.equal(key({}, header('')), undefined);
  t.equal(key({}, { headers: { 'x-session-id': 's1' }, rawHeaders: ['x-SESSION-id', 's1'] }), 's1');
});

t.test("C-126 the header's bytes are UTF-8", async (t) => {
  t.equal(key({}, header('sitzung-ä-😀')), 'sitzung-ä-😀');
  const broken = { headers: { 'x-session-id': '\xe4' }, rawHeaders: ['X-Session-Id', '\xe4'] };
  t.match(
    fault(() => key({}, broken)),
    { status: 400, param: 'X-Session-Id', code: 'invalid_value', message: /UTF-8/ },
  );
});

t.test('C-126 a second header is refused, even if the body names the session', async (t) => {
  t.match(
    fault(() => key({ session_id: 's1' }, header('a', 'b'))),
    { status: 400, param: 'X-Session-Id', message: /more than once/ },
  );
});

t.test('C-135 a key may be any text of 512 bytes', async (t) => {
  for (const odd of ['a/../b', '..', 'C:\\', 'é'.repeat(256), "'; drop table session", 'a\u2028b', 'a:b'])
    t.equal(key({ session_id: odd }), odd);
  const tooLong = { status: 400, code: 'string_above_max_length' };
  t.match(
    fault(() => key({ session_id: 'x'.repeat(513) })),
    { ...tooLong, param: 'session_id' },
  );
  t.match(
    fault(() => key({ user: `${'é'.repeat(256)}x` })),
    { ...tooLong, param: 'user' },
  );
  t.match(
    fault(() => key({}, header('x'.repeat(513)))),
    { ...tooLong, param: 'X-Session-Id' },
  );
  t.equal(key({ user: 'x'.repeat(512), session_id: 'y'.repeat(512) })?.length, 1025, 'each for itself');
});

t.test('C-135 a key has no control characters and no unpaired surrogates', async (t) => {
  for (const control of ['\0', 'a\nb', 'a\tb', '\x7f', '\x85']) {
    t.match(
      fault(() => key({ session_id: `x${control}x` })),
      { status: 400, param: 'session_id', code: 'invalid_value' },
    );
  }
  for (const half of ['\ud83d', 'a\udc00b']) {
    t.match(
      fault(() => key({ user: half })),
      { status: 400, param: 'user', code: 'invalid_value' },
    );
  }
  t.match(
    fault(() => key({}, header('a\tb'))),
    { status: 400, param: 'X-Session-Id' },
  );
});

t.test('C-136 fields not listed in sessionFrom are not a key and are not checked', async (t) => {
  t.equal(key({ user: 'ann', session_id: 's1' }, header('head'), ['session_id']), 's1');
  t.equal(key({ user: 'ann' }, header('head'), ['header']), 'head');
  t.equal(key({ session_id: 's1' }, header('head'), ['user']), undefined);
  t.equal(key({ user: '\0' }, header('a', 'b'), ['session_id']), undefined);
  t.equal(key({ user: 'ann', session_id: 's1' }, header('head'), []), undefined);
});

t.test('C-062 safety_identifier and prompt_cache_key are not part of a key', async (t) => {
  const fields = { safety_identifier: 'ann', prompt_cache_key: 'k' };
  t.equal(key(fields), undefined);
  t.equal(key({ user: 'ann', ...fields }), 'ann');
});

t.test('the user is passed on if sessionFrom lists it', async (t) => {
  t.strictSame(session({ user: 'ann' }), { key: 'ann', user: 'ann' });
  t.strictSame(session({ user: 'ann', session_id: 's1' }), { key: 'ann:s1', user: 'ann' });
  t.strictSame(session({ user: ' ', session_id: 's1' }), { key: 's1', user: undefined });
  t.strictSame(session({ user: 'ann', session_id: 's1' }, NO_HEADER, ['session_id']), { key: 's1', user: undefined });
});

t.test('a session_id that begins with conv_ is an opaque id and needs no user', async (t) => {
  t.strictSame(session({ session_id: 'conv_1' }), { conversation: 'conv_1', param: 'session_id' });
  t.strictSame(session({ session_id: 'conv_1', user: 'ann' }), { conversation: 'conv_1', param: 'session_id' });
  t.strictSame(session({ user: 'ann' }, header('conv_1')), { conversation: 'conv_1', param: 'X-Session-Id' });
  t.strictSame(session({ session_id: 's1' }, header('conv_1')), { key: 's1', user: undefined }, 'the body wins');
  t.strictSame(session({ user: 'conv_1' }), { key: 'conv_1', user: 'conv_1' }, 'a user may have any name');
  t.strictSame(session({ session_id: ' conv_1' }), { key: ' conv_1', user: undefined });
  t.strictSame(effectiveSources(session({ session_id: 'conv_1' }), ALL), ['session_id', 'header']);
  t.strictSame(effectiveSources(session({ session_id: 's1' }), ALL), ALL);
  t.strictSame(effectiveSources(undefined, ALL), ALL);
});
