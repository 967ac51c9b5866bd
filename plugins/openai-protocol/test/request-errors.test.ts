import t from 'tap';
import * as errors from '../src/errors/errors.js';
import * as requestErrors from '../src/errors/request-errors.js';

const protocol = { ...errors, ...requestErrors };

t.test("request errors have the reference protocol's message, param and code", async (t) => {
  const { ProtocolError, ...faults } = protocol;
  const cases: readonly [fault: errors.ProtocolError, code: string, message: string][] = [
    [faults.missingParameter('p'), 'missing_required_parameter', "Missing required parameter: 'p'."],
    [
      faults.wrongType('p', 'a string', 1),
      'invalid_type',
      "Invalid type for 'p': expected a string, but got an integer instead.",
    ],
    [
      faults.wrongValue('p', 'x', ['a', 'b', 'c']),
      'invalid_value',
      "Invalid value: 'x'. Supported values are: 'a', 'b', and 'c'.",
    ],
    [faults.invalidValue('p', 'it is empty'), 'invalid_value', "Invalid 'p': it is empty."],
    [
      faults.unsupportedPart('p', 'file', 'fast'),
      'invalid_value',
      "Invalid value: 'file'. The model connection 'fast' takes text only.",
    ],
    [
      faults.stringTooLong('p', 3, 4),
      'string_above_max_length',
      "Invalid 'p': string too long. Expected a string with maximum length 3, but got a string with length 4 instead.",
    ],
    [
      faults.stringTooLong('p', 3, 4, 'bytes'),
      'string_above_max_length',
      "Invalid 'p': string too long. Expected a string with maximum length 3 bytes, but got a string with length 4 bytes instead.",
    ],
    [
      faults.arrayTooLong('p', 3, 4),
      'array_above_max_length',
      "Invalid 'p': array too long. Expected an array with maximum length 3, but got an array with length 4 instead.",
    ],
    [
      faults.emptyArray('p'),
      'empty_array',
      "Invalid 'p': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    ],
    [
      faults.outOfRange('p', 'integer', 'minimum', 1, 0),
      'integer_below_min_value',
      "Invalid 'p': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    ],
    [
      faults.outOfRange('p', 'decimal', 'maximum', 2, 2.5),
      'decimal_above_max_value',
      "Invalid 'p': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
    ],
    [
      faults.tooManyProperties('p', 3, 4),
      'object_above_max_properties',
      "Invalid 'p': too many properties. Expected an object with at most 3 properties, but got an object with 4 properties instead.",
    ],
    [
      faults.propertyNameTooLong('p', '👍👍👍', 2),
      'property_name_above_max_length',
      "Invalid property name in 'p': '👍👍👍...👍👍👍' is too long. Expected a string with maximum length 2, but got a string with length 3 instead.",
    ],
  ];
  for (const [fault, code, message] of cases) {
    t.ok(fault instanceof ProtocolError);
    t.equal(fault.status, 400);
    t.strictSame(fault.body, {
      error: {
        message,
        type: 'invalid_request_error',
        param: code === 'property_name_above_max_length' ? 'p.👍👍👍' : 'p',
        code,
      },
    });
  }
});

t.test('a type error names the type of the value', async (t) => {
  const kinds: readonly [value: unknown, kind: string][] = [
    [null, 'null'],
    [[], 'an array'],
    [{}, 'an object'],
    ['', 'a string'],
    [true, 'a boolean'],
    [1.5, 'a decimal number'],
  ];
  for (const [value, kind] of kinds) t.match(protocol.wrongType('p', 'x', value).message, `but got ${kind} instead`);
});

t.test('a long value is truncated in messages', async (t) => {
  t.match(protocol.wrongValue('p', 'x'.repeat(64), []).message, `'${'x'.repeat(64)}'`);
  t.match(protocol.wrongValue('p', 'x'.repeat(65), []).message, `'${'x'.repeat(61)}...'`);
});
