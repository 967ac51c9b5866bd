import { type CheckContext, type ConfigProblem, type Infer, type JsonSchema, parseDuration } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      minLength: 1,
      description: 'The database file. Missing folders are created, readable by the server only.',
      default: './data/sessions.db',
    },
    ttl: {
      type: 'string',
      format: 'duration',
      description: 'How long a session is kept after its last turn.',
      default: '30d',
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
    maxSessionsPerProject: {
      type: 'integer',
      minimum: 1,
      description: 'Maximum number of sessions of one project. Beyond it, no new ones are created.',
      default: 100_000,
    },
    maxBytesPerProject: {
      type: 'string',
      format: 'size',
      description:
        'Maximum size of what one project stores, as JSON. Beyond it, no turn begins until something is deleted or expires.',
      default: '10gb',
    },
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
