import { ProtocolError } from '@plugboard/openai-protocol';
import { Ajv } from 'ajv';
import t from 'tap';
import { requestSchema } from '../src/request/request-schema.js';
import { parseRequest } from '../src/request/validate.js';
import { HI } from './support/route.js';

/** What a body is refused with. */
function fault(body: unknown) {
  try {
    parseRequest(body);
  } catch (error) {
    if (error instanceof ProtocolError) return { status: error.status, ...error.body.error };
    throw error;
  }
  throw new Error('the body was taken');
}

/** What a body with these fields besides model and messages is refused with. */
const errorFor = (fields: object) => fault({ model: 'a', messages: HI, ...fields });

/** What a body with this one message is refused with. */
const faultOfMessage = (message: unknown) => fault({ model: 'a', messages: [message] });

const invalid = (param: string | null, code: string | null) => ({ status: 400, type: 'invalid_request_error', param, code });

t.test('the schema itself is a strict schema', async (t) => {
  const ajv = new Ajv({ discriminator: true, allowUnionTypes: true });
  t.doesNotThrow(() => ajv.compile(requestSchema));
});

t.test('C-021 a body that is not a JSON object is refused as unreadable', async (t) => {
  for (const body of [[], 'x', 42, null, true, undefined]) {
    const error = fault(body);
    t.match(error, invalid(null, null));
    t.match(error.message, /^We could not parse the JSON body of your request\./);
  }
});

t.test('C-026 a missing, empty or null model is reported as missing', async (t) => {
  for (const model of [{}, { model: '' }, { model: null }]) {
    t.same(fault({ ...model, messages: HI }), { ...invalid(null, null), message: 'you must provide a model parameter' });
  }
});

t.test('a model that is not a string makes the body unreadable, as in the reference', async (t) => {
  t.match(fault({ model: 7, messages: HI }), { ...invalid(null, null), message: /^We could not parse the JSON body/ });
});

t.test('a model longer than 256 bytes is refused', async (t) => {
  t.match(fault({ model: 'é'.repeat(129), messages: HI }), invalid('model', 'string_above_max_length'));
  t.equal(parseRequest({ model: 'é'.repeat(128), messages: HI }).model.length, 128);
});

t.test('C-027 a fault of model is reported before any other', async (t) => {
  t.equal(fault({ messages: 7, temperature: 'hot', n: 0 }).message, 'you must provide a model parameter');
});

t.test('C-028 missing messages are refused', async (t) => {
  for (const messages of [{}, { messages: null }]) {
    t.same(fault({ model: 'a', ...messages }), {
      ...invalid('messages', 'missing_required_parameter'),
      message: "Missing required parameter: 'messages'.",
    });
  }
});

t.test('C-029 empty messages are refused', async (t) => {
  t.same(fault({ model: 'a', messages: [] }), {
    ...invalid('messages', 'empty_array'),
    message: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
  });
});

t.test('C-030 messages that are not an array are refused', async (t) => {
  t.same(fault({ model: 'a', messages: 'hi' }), {
    ...invalid('messages', 'invalid_type'),
    message: "Invalid type for 'messages': expected an array of objects, but got a string instead.",
  });
  t.match(fault({ model: 'a', messages: {} }), invalid('messages', 'invalid_type'));
});

t.test('C-031 a message that is not an object is refused with its place', async (t) => {
  t.match(faultOfMessage(123), invalid('messages[0]', 'invalid_type'));
  t.match(faultOfMessage(null), invalid('messages[0]', 'invalid_type'));
  t.match(faultOfMessage({}), invalid('messages[0].role', 'missing_required_parameter'));
  t.match(faultOfMessage({ role: 123 }), invalid('messages[0].role', 'invalid_type'));
  t.same(fault({ model: 'a', messages: [...HI, { role: 'user', content: 7 }] }), {
    ...invalid('messages[1].content', 'invalid_type'),
    message: "Invalid type for 'messages[1].content': expected one of a string or array of objects, but got an integer instead.",
  });
});

t.test('C-032 an unknown role is refused with the list of roles', async (t) => {
  t.same(faultOfMessage({ role: 'bogus', content: 'x' }), {
    ...invalid('messages[0].role', 'invalid_value'),
    message: "Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
  });
});

t.test('C-035 a content part without a type, or of an unknown one, is refused', async (t) => {
  const part = (part: unknown) => faultOfMessage({ role: 'user', content: [{ type: 'text', text: 'a' }, part] });
  t.match(part({}), invalid('messages[0].content[1].type', 'missing_required_parameter'));
  t.match(part({ type: 'smell' }), invalid('messages[0].content[1].type', 'invalid_value'));
  t.match(part({ type: 'text' }), invalid('messages[0].content[1].text', 'missing_required_parameter'));
  t.match(
    part({ type: 'image_url', image_url: {} }),
    invalid('messages[0].content[1].image_url.url', 'missing_required_parameter'),
  );
  t.match(faultOfMessage({ role: 'tool', tool_call_id: 'c', content: [{ type: 'image_url' }] }), {
    ...invalid('messages[0].content[0].type', 'invalid_value'),
    message: "Invalid value: 'image_url'. Supported values are: 'text'.",
  });
});

t.test('a tool message without tool_call_id is refused', async (t) => {
  t.match(faultOfMessage({ role: 'tool', content: 'x' }), invalid('messages[0].tool_call_id', 'missing_required_parameter'));
});

t.test('C-036 a field of the wrong type is refused with the expected one', async (t) => {
  const cases: [object, string, string][] = [
    [{ stream: 'yes' }, 'stream', 'a boolean, but got a string'],
    [{ temperature: 'hot' }, 'temperature', 'a decimal, but got a string'],
    [{ n: '2' }, 'n', 'an integer, but got a string'],
    [{ n: 1.5 }, 'n', 'an integer, but got a decimal number'],
    [{ user: {} }, 'user', 'a string, but got an object'],
    [{ session_id: 7 }, 'session_id', 'a string, but got an integer'],
    [{ stop: 7 }, 'stop', 'one of a string or array of strings, but got an integer'],
    [{ metadata: [] }, 'metadata', 'a metadata object, but got an array'],
    [{ metadata: { k: true } }, 'metadata.k', 'a string, but got a boolean'],
    [{ tools: {} }, 'tools', 'an array of objects, but got an object'],
    [{ tool_choice: 7 }, 'tool_choice', 'one of a string or object, but got an integer'],
    [{ response_format: 'json' }, 'response_format', 'an object, but got a string'],
    [
      { response_format: { type: null } },
      'response_format.type',
      "one of 'json_object', 'json_schema', and 'text', but got null",
    ],
  ];
  for (const [fields, param, words] of cases) {
    t.same(errorFor(fields), {
      ...invalid(param, 'invalid_type'),
      message: `Invalid type for '${param}': expected ${words} instead.`,
    });
  }
});

t.test('C-037 a number out of range is refused with the bound', async (t) => {
  t.same(errorFor({ temperature: 3 }), {
    ...invalid('temperature', 'decimal_above_max_value'),
    message: "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
  });
  t.same(errorFor({ n: 0 }), {
    ...invalid('n', 'integer_below_min_value'),
    message: "Invalid 'n': integer below minimum value. Expected a value >= 1, but got 0 instead.",
  });
  const cases: [object, string][] = [
    [{ temperature: -0.1 }, 'decimal_below_min_value'],
    [{ top_p: 2 }, 'decimal_above_max_value'],
    [{ presence_penalty: 3 }, 'decimal_above_max_value'],
    [{ presence_penalty: -3 }, 'decimal_below_min_value'],
    [{ frequency_penalty: 3 }, 'decimal_above_max_value'],
    [{ frequency_penalty: -3 }, 'decimal_below_min_value'],
    [{ n: 129 }, 'integer_above_max_value'],
    [{ top_logprobs: 21 }, 'integer_above_max_value'],
    [{ max_completion_tokens: 0 }, 'integer_below_min_value'],
    [{ max_tokens: 0 }, 'integer_below_min_value'],
    [{ max_tokens: 2 ** 31 }, 'integer_above_max_value'],
  ];
  for (const [fields, code] of cases) {
    const [name = ''] = Object.keys(fields);
    t.match(errorFor(fields), { ...invalid(name, code) }, JSON.stringify(fields));
  }
});

t.test('C-038 more than four stop sequences are refused', async (t) => {
  t.match(errorFor({ stop: ['a', 'b', 'c', 'd', 'e'] }), {
    ...invalid('stop', 'array_above_max_length'),
    message: "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
  });
  t.match(errorFor({ stop: ['a', 7] }), invalid('stop[1]', 'invalid_type'));
});

t.test('C-039 metadata is limited in pairs, names and values', async (t) => {
  const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));
  t.match(errorFor({ metadata: pairs(17) }), {
    ...invalid('metadata', 'object_above_max_properties'),
    message: /at most 16 properties, but got an object with 17 properties/,
  });
  t.match(errorFor({ metadata: { ['k'.repeat(65)]: 'v' } }), {
    ...invalid(`metadata.${'k'.repeat(65)}`, 'property_name_above_max_length'),
    message: /'kkk\.\.\.kkk' is too long\. Expected a string with maximum length 64, but got a string with length 65/,
  });
  t.same(errorFor({ metadata: { k: 'v'.repeat(600) } }), {
    ...invalid('metadata.k', 'string_above_max_length'),
    message:
      "Invalid 'metadata.k': string too long. Expected a string with maximum length 512, but got a string with length 600 instead.",
  });
  t.match(errorFor({ metadata: { k: 1 } }), invalid('metadata.k', 'invalid_type'));
  t.match(parseRequest({ model: 'a', messages: HI, metadata: { k: '😀'.repeat(512) } }), { metadata: { k: /./ } });
});

t.test('C-040 an invalid response format is refused', async (t) => {
  t.same(errorFor({ response_format: { type: 'bogus' } }), {
    ...invalid('response_format.type', 'invalid_value'),
    message: "Invalid value: 'bogus'. Supported values are: 'json_object', 'json_schema', and 'text'.",
  });
  t.match(
    errorFor({ response_format: { type: 'json_schema' } }),
    invalid('response_format.json_schema', 'missing_required_parameter'),
  );
  t.match(
    errorFor({ response_format: { type: 'json_schema', json_schema: {} } }),
    invalid('response_format.json_schema.name', 'missing_required_parameter'),
  );
  t.match(
    errorFor({ response_format: { type: 'json_schema', json_schema: { name: 'a b' } } }),
    invalid('response_format.json_schema.name', 'invalid_value'),
  );
});

t.test('C-041 stream_options without stream are refused', async (t) => {
  for (const stream of [{}, { stream: false }, { stream: null }]) {
    t.same(errorFor({ ...stream, stream_options: { include_usage: true } }), {
      ...invalid('stream_options', null),
      message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    });
  }
});

t.test('C-042 n greater than 1 is refused', async (t) => {
  t.match(errorFor({ n: 2 }), invalid('n', 'unsupported_value'));
  t.equal(parseRequest({ model: 'a', messages: HI, n: 1 }).n, 1);
  t.equal(parseRequest({ model: 'a', messages: HI, n: null }).n, undefined);
});

t.test('C-043 null in an optional field counts as absent', async (t) => {
  const known = Object.keys(requestSchema.properties).filter((name) => name !== 'messages');
  const nulls = Object.fromEntries([...known, 'unheard_of'].map((name) => [name, null]));
  t.same(parseRequest({ ...nulls, model: 'a', messages: HI }), { model: 'a', messages: HI });
});

t.test('C-044 S-53 unknown fields are accepted, and of large values only the names are kept', async (t) => {
  const scalars = { chat_id: '1', top_k: 40 };
  const request = parseRequest({ model: 'a', messages: HI, ...scalars, features: { web: true }, cache_control: [] });
  t.match(request, scalars);
  t.same(Object.keys(request).slice(-2), ['features', 'cache_control']);
  t.equal(request.features, undefined);
});

t.test('keys such as constructor are unknown fields like any other', async (t) => {
  const body = JSON.parse(
    '{"model":"a","messages":[{"role":"user","content":"Hi","__proto__":{"x":1}}],"__proto__":{"stream":"yes"},"constructor":{"prototype":{"n":2}}}',
  );
  const request = parseRequest(body);
  t.equal(request.stream, undefined);
  t.equal(Object.getPrototypeOf(request), Object.prototype);
});

t.test('audio output is refused', async (t) => {
  t.match(errorFor({ modalities: ['text', 'audio'] }), invalid('modalities', 'unsupported_value'));
  t.match(
    errorFor({ modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } }),
    invalid('audio', 'unsupported_parameter'),
  );
  t.ok(parseRequest({ model: 'a', messages: HI, modalities: ['text'], audio: { voice: 'a', format: 'wav' } }));
});

t.test('more than 2,048 messages, or 128 tools, are refused', async (t) => {
  const many = Array.from({ length: 2049 }, () => HI[0]);
  t.match(fault({ model: 'a', messages: many }), invalid('messages', 'array_above_max_length'));
  t.ok(parseRequest({ model: 'a', messages: many.slice(1) }));
  const tool = { type: 'function', function: { name: 'f' } };
  t.match(errorFor({ tools: Array.from({ length: 129 }, () => tool) }), invalid('tools', 'array_above_max_length'));
});

t.test('only the first of several faults is reported, in the order of the reference', async (t) => {
  const faults = [
    { messages: [{ role: 'x' }] },
    { functions: 7 },
    { tools: 7 },
    { parallel_tool_calls: 7 },
    { max_completion_tokens: 'x' },
    { n: 'x' },
    { temperature: 'x' },
    { top_p: 'x' },
    { presence_penalty: 'x' },
    { frequency_penalty: 'x' },
    { logprobs: 'x' },
    { top_logprobs: 'x' },
    { user: 7 },
    { seed: 'x' },
    { safety_identifier: 7 },
    { prompt_cache_key: 7 },
    { prompt_cache_retention: 7 },
    { service_tier: 7 },
    { stream: 'x' },
    { store: 'x' },
    { metadata: 'x' },
    { verbosity: 'x' },
  ];
  for (const [i, first] of faults.entries()) {
    const body = Object.assign({ model: 'a', messages: HI }, ...faults.slice(i).reverse());
    t.match(fault(body).param, Object.keys(first)[0] ?? '');
  }
  t.match(
    fault({ model: 'a', messages: HI, verbosity: 7, n: 2 }).param,
    'verbosity',
    'what cannot be done comes after what cannot be read',
  );
});

t.test('values of the request are truncated in errors', async (t) => {
  t.ok(errorFor({ verbosity: 'x'.repeat(1e6) }).message.length < 200);
  t.ok(errorFor({ logit_bias: { ['x'.repeat(1e6)]: 'x' } }).message.length < 300);
});
