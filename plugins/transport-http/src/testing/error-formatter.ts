import assert from 'node:assert/strict';
import type { Contract } from '@plugboard/testing';
import type { ErrorFormatter } from '../errors/error-format.js';
import { HttpError } from '../errors/http-error.js';

const REQUEST_ID = 'req_00000000000000000000000000000001';
const STATUSES = [400, 401, 403, 404, 405, 413, 415, 429, 500, 502, 503];

/** Adds the tests of the `formatError` of a route or an upgrade. They pass if it has none. */
export function addErrorCases(contract: Contract, formatterOf: () => Promise<ErrorFormatter | undefined>): void {
  const add = (name: string, check: (formatter: ErrorFormatter, error: HttpError) => void) =>
    contract.add(name, 'HttpRoute.formatError', async () => {
      const formatter = await formatterOf();
      if (!formatter) return;
      for (const status of STATUSES) {
        for (const code of [undefined, 'some_code']) check(formatter, new HttpError(status, 'what went wrong', { code }));
      }
    });
  add('formats every error as an object, with or without a code', (formatter, error) => {
    const { body }: { readonly body: unknown } = formatter(error, REQUEST_ID);
    assert.ok(typeof body === 'object' && body !== null, `for ${error.status} it returns ${JSON.stringify(body)}`);
  });
  add('keeps the message of an error', (formatter, error) => {
    const text = JSON.stringify(formatter(error, REQUEST_ID).body);
    assert.ok(text.includes('what went wrong'), `the body for ${error.status} lacks the message: ${text}`);
  });
  add('shows no stack of an error', (formatter, error) => {
    assert.ok(!JSON.stringify(formatter(error, REQUEST_ID)).includes('    at '), 'the body contains a stack');
  });
}
