import { type CheckContext, type ConfigProblem, type Infer, type JsonSchema, parseDuration } from '@plugboard/kernel';
import { keptOptions } from '@plugboard/store-kit';

export const configSchema = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      minLength: 1,
      description: 'The database file. Missing folders are created, readable by the server only.',
      default: './data/sessions.db',
    },
    backup: {
      type: 'object',
      description: 'Copies the file to `path` while the server runs. A copy replaces the one before when it is complete.',
      properties: {
        path: {
          type: 'string',
          minLength: 1,
          description: 'The copy. Missing folders are created, readable by the server only.',
        },
        every: {
          type: 'string',
          format: 'duration',
          description: 'The time from one copy to the next, at least `1m`.',
          default: '24h',
        },
      },
      required: ['path'],
      additionalProperties: false,
    },
    ...keptOptions,
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type SqliteConfig = Infer<typeof configSchema>;

/** Milliseconds. A copy keeps the disk busy. */
const SHORTEST_INTERVAL = 60_000;

/** Finds the mistakes that the schema cannot describe. */
export function checkConfig({ path, backup }: SqliteConfig, { resolvePath }: CheckContext): ConfigProblem[] {
  if (backup === undefined) return [];
  const problems: ConfigProblem[] = [];
  if (resolvePath(backup.path) === resolvePath(path)) {
    problems.push({ path: ['backup', 'path'], message: 'is the database file itself; name another file' });
  }
  if (parseDuration(backup.every) < SHORTEST_INTERVAL) {
    problems.push({ path: ['backup', 'every'], message: 'must be at least 1m' });
  }
  return problems;
}
