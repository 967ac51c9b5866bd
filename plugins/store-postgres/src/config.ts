import { type ConfigProblem, type Infer, type JsonSchema, parseDuration } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    url: {
      type: 'string',
      minLength: 1,
      secret: true,
      description:
        'The database, as `postgres://user:password@host:5432/database`, with `sslmode` and `sslrootcert` if it needs them.',
    },
    schema: {
      type: 'string',
      pattern: '^[a-z_][a-z0-9_]{0,62}$',
      description: 'The schema of all tables, for this server alone. Created if it is missing.',
      default: 'plugboard',
    },
    poolSize: {
      type: 'integer',
      minimum: 1,
      description: 'Maximum number of connections. One for the lease comes on top.',
      default: 10,
    },
    lease: {
      type: 'string',
      format: 'duration',
      description: 'How long a server that was killed keeps the schema, from `5s` to `5m`.',
      default: '15s',
    },
    ttl: {
      type: 'string',
      format: 'duration',
      description: 'How long a session is kept after its last turn.',
      default: '30d',
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
  required: ['url'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type PostgresConfig = Infer<typeof configSchema>;

/** Milliseconds. */
const MIN_LEASE = 5_000;
const MAX_LEASE = 5 * 60_000;

/** Finds the mistakes that the schema cannot describe. Quotes nothing of the URL: the password. */
export function checkConfig({ url, lease }: PostgresConfig): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (!/^postgres(ql)?:$/.test(URL.parse(url)?.protocol ?? '')) {
    problems.push({ path: ['url'], message: 'must have the form postgres://user:password@host:5432/database' });
  }
  const ms = parseDuration(lease);
  if (ms < MIN_LEASE || ms > MAX_LEASE) problems.push({ path: ['lease'], message: 'must be from 5s to 5m' });
  return problems;
}
