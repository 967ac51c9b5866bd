import type { StandardSchemaV1 } from '@modelcontextprotocol/client';

/** Results are checked where they are converted. */
export const ANY_RESULT: StandardSchemaV1<unknown, Readonly<Record<string, unknown>>> = {
  '~standard': { version: 1, vendor: 'plugboard', validate: (value) => ({ value: value as Readonly<Record<string, unknown>> }) },
};
