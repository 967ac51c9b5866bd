import { type ConfigProblem, type Infer, type JsonSchema, parseDuration } from '@plugboard/kernel';
import { keptOptions } from '@plugboard/store-kit';

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
    listenUrl: {
      type: 'string',
      minLength: 1,
      secret: true,
      description: 'The database past a pooler, for `LISTEN`. By default `url`.',
    },
    schema: {
      type: 'string',
      pattern: '^[a-z_][a-z0-9_]{0,62}$',
      description: 'The schema of all tables, the same for all servers that share the sessions. Created if it is missing.',
      default: 'plugboard',
    },
    poolSize: {
      type: 'integer',
      minimum: 1,
      description: 'Maximum number of connections. One for the lease and one for `LISTEN` come on top.',
      default: 10,
    },
    lease: {
      type: 'string',
      format: 'duration',
      description: 'How long a server that is silent keeps its sessions, from `5s` to `5m`.',
      default: '15s',
    },
    ...keptOptions,
  },
  required: ['url'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type PostgresConfig = Infer<typeof configSchema>;

/** Milliseconds. */
const MIN_LEASE = 5_000;
const MAX_LEASE = 5 * 60_000;

/** Finds the mistakes that the schema cannot describe. Quotes nothing of the URL: the password. */
export function checkConfig({ url, listenUrl, lease }: PostgresConfig): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  for (const [name, text] of Object.entries({ url, ...(listenUrl !== undefined && { listenUrl }) })) {
    if (/^postgres(ql)?:$/.test(URL.parse(text)?.protocol ?? '')) continue;
    problems.push({ path: [name], message: 'must have the form postgres://user:password@host:5432/database' });
  }
  const ms = parseDuration(lease);
  if (ms < MIN_LEASE || ms > MAX_LEASE) problems.push({ path: ['lease'], message: 'must be from 5s to 5m' });
  return problems;
}
