import { LOG_LEVELS } from '../log/log.js';
import type { Infer, JsonSchema } from '../options/schema-types.js';

/** The host's own key of the file. */
export const LOG_SCHEMA = {
  type: 'object',
  properties: {
    level: { enum: LOG_LEVELS, default: 'info', description: 'The lowest level that is logged.' },
    buffer: {
      type: 'string',
      format: 'size',
      description:
        'Memory for log lines that wait to be written. By default a 64th of the heap limit, 16 MB at most. ' +
        'Further lines are dropped and counted.',
    },
    audit: {
      type: 'string',
      minLength: 1,
      description:
        'A file for audit lines. By default they go to standard error with the others. They are written at every `level`.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type LogSettings = Infer<typeof LOG_SCHEMA>;
