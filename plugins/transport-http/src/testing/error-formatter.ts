import assert from 'node:assert/strict';
import { Contract, type ContractCase, type DeclareTest, declareTests } from '@plugboard/testing';
import type { ErrorFormatter } from '../errors/error-format.js';
import { HttpError } from '../errors/http-error.js';

export interface ErrorFormatterContractOptions {
  readonly formatter: ErrorFormatter;
}

/** Declares the tests of the format of error bodies (`ErrorFormatter`). */
export function errorFormatterContract(test: DeclareTest, options: ErrorFormatterContractOptions): void {
  declareTests(test, errorFormatterCases(options));
}

/** The cases of `errorFormatterContract`. */
export function errorFormatterCases({ formatter }: ErrorFormatterContractOptions): readonly ContractCase[] {
  const contract = new Contract('An error formatter');
  const errors = [400, 401, 403, 404, 405, 413, 415, 429, 500, 502, 503].flatMap((status) => [
    new HttpError(status, 'what went wrong'),
    new HttpError(status, 'what went wrong', { code: 'some_code' }),
  ]);
  contract.add('returns an object for every status, with or without a code', 'ErrorFormatter', async () => {
    for (const error of errors) {
      const body: unknown = formatter(error);
      assert.ok(typeof body === 'object' && body !== null, `for ${error.status} it returns ${JSON.stringify(body)}`);
    }
  });
  contract.add('keeps the message and the code', 'ErrorFormatter', async () => {
    for (const error of errors) {
      const text = JSON.stringify(formatter(error));
      assert.ok(text.includes('what went wrong'), `the body for ${error.status} lacks the message: ${text}`);
      assert.ok(error.code === undefined || text.includes(error.code), `the body for ${error.status} lacks the code: ${text}`);
    }
  });
  contract.add('shows no stack', 'ErrorFormatter', async () => {
    for (const error of errors) assert.ok(!JSON.stringify(formatter(error)).includes('    at '), 'the body contains a stack');
  });
  return contract.cases;
}
