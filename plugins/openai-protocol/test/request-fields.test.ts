import { type AgentRuntime, OPEN, type Target, type TargetResolution } from '@plugboard/kernel/contracts';
import {
  checkAgentName,
  optionalString,
  ProtocolError,
  parseMetadata,
  parseSessionKey,
  requireField,
  requireObject,
  requireString,
  resolveAgent,
} from '@plugboard/openai-protocol';
import { headerSafeName, ignoredParamsHeader } from '@plugboard/turn-routes';
import t from 'tap';

/** The error that a caller gets for what the work throws. */
function refusal(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof ProtocolError) return { status: error.status, ...error.body.error };
    throw error;
  }
  throw new Error('nothing was refused');
}

t.test('field checks return the value or throw an error with its path', async (t) => {
  const object = { a: 1 };
  t.equal(requireObject(object, 'p'), object);
  for (const value of [null, [], 'x'])
    t.match(
      refusal(() => requireObject(value, 'p')),
      { param: 'p', code: 'invalid_type' },
    );
  t.equal(requireString('', 'p'), '');
  t.match(
    refusal(() => requireString(1, 'p')),
    { param: 'p', code: 'invalid_type' },
  );
  t.match(
    refusal(() => requireString('x'.repeat(10 * 1024 * 1024 + 1), 'p')),
    { param: 'p', code: 'string_above_max_length' },
  );
  t.equal(optionalString(null, 'p'), undefined);
  t.equal(optionalString('x', 'p'), 'x');
  t.equal(requireField(object, 'a', 'p'), 1);
  t.match(
    refusal(() => requireField({ a: null }, 'a', 'p')),
    { param: 'p.a', code: 'missing_required_parameter' },
  );
});

t.test('C-039 metadata has at most 16 pairs, names of 64 and values of 512 characters', async (t) => {
  const most = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`${'😀'.repeat(62)}${i + 10}`, '😀'.repeat(512)]));
  t.strictSame(parseMetadata(most), most);
  t.strictSame(parseMetadata(null), {});
  t.match(
    refusal(() => parseMetadata('x')),
    { param: 'metadata', message: /expected a metadata object/ },
  );
  t.match(
    refusal(() => parseMetadata({ ...most, more: '' })),
    { param: 'metadata', code: 'object_above_max_properties' },
  );
  t.match(
    refusal(() => parseMetadata({ ['x'.repeat(65)]: '' })),
    { param: `metadata.${'x'.repeat(65)}`, code: 'property_name_above_max_length' },
  );
  t.match(
    refusal(() => parseMetadata({ a: 1 })),
    { param: 'metadata.a', code: 'invalid_type' },
  );
  t.match(
    refusal(() => parseMetadata({ a: 'x'.repeat(513) })),
    { param: 'metadata.a', code: 'string_above_max_length' },
  );
});

t.test('a session key may be blank and must be valid', async (t) => {
  t.equal(parseSessionKey('ann', 'user'), 'ann');
  t.equal(parseSessionKey(undefined, 'user'), undefined);
  t.equal(parseSessionKey(' \n', 'user'), undefined);
  t.match(
    refusal(() => parseSessionKey('é'.repeat(257), 'user')),
    {
      param: 'user',
      code: 'string_above_max_length',
      message: /maximum length 512 bytes, but got a string with length 514 bytes/,
    },
  );
  t.match(
    refusal(() => parseSessionKey('a\0', 'user')),
    {
      code: 'invalid_value',
      message: "Invalid 'user': it contains a control character.",
    },
  );
});

t.test('an agent is resolved by name, or the error names the field', async (t) => {
  const finding = (resolution: TargetResolution) =>
    resolveAgent({ resolve: () => resolution } as Partial<AgentRuntime> as AgentRuntime, 'x', 'model', OPEN);
  const target = { name: 'x' } as Target;
  t.equal(finding({ kind: 'target', target }), target);
  t.strictSame(
    refusal(() => finding({ kind: 'forbidden' })),
    {
      status: 403,
      message:
        'This API token may not use the agent that `model` names: it is of another project, or the token is for other agents. ' +
        'GET /v1/models lists what it may use.',
      type: 'svc_error',
    },
  );
  t.strictSame(
    refusal(() => finding({ kind: 'unknown' })),
    {
      status: 400,
      message: 'No agent or model has the name in `model`, and there is no default agent.',
      type: 'svc_error',
    },
  );
  checkAgentName('x'.repeat(256), 'model');
  t.match(
    refusal(() => checkAgentName('é'.repeat(129), 'model')),
    { param: 'model', code: 'string_above_max_length' },
  );
});

t.test('ignored parameters are named in a header, 32 at most', async (t) => {
  t.strictSame(ignoredParamsHeader([]), {});
  t.strictSame(ignoredParamsHeader(['top_k', 'a\r\nb', 'ä', 'x'.repeat(65)].map(headerSafeName)), {
    'x-ignored-params': 'top_k, ?, ?, ?',
  });
  const names = Array.from({ length: 40 }, (_, i) => `f${i}`);
  t.strictSame(ignoredParamsHeader(names), { 'x-ignored-params': names.slice(0, 32).join(', ') });
});
