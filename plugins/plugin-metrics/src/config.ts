import type { ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    host: {
      type: 'string',
      minLength: 1,
      description:
        'The address to listen on. Any other than loopback accepts connections from other machines and requires `token`, or ' +
        '`open: true`.',
      default: '127.0.0.1',
    },
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65535,
      description: 'The port to listen on. 0 picks a free one.',
      default: 9464,
    },
    path: { type: 'string', pattern: '^/[!-"$->@-~]*$', description: 'The path of the page.', default: '/metrics' },
    token: {
      type: 'string',
      minLength: 1,
      maxLength: 512,
      secret: true,
      description: 'Scrapes must send it as `Authorization: Bearer …`. Without it, they need no credential.',
    },
    open: {
      type: 'boolean',
      description: 'Whether other machines may read the metrics without a token.',
      default: false,
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type MetricsConfig = Infer<typeof configSchema>;

/** Checks what the schema cannot express. */
export function checkConfig({ host, token, open }: MetricsConfig): readonly ConfigProblem[] {
  if (token !== undefined && !/^[!-~]*$/.test(token)) {
    return [{ path: ['token'], message: 'must consist of ASCII letters, digits and punctuation, without a space' }];
  }
  if (isLoopback(host) || token !== undefined || open) return [];
  const message =
    `is missing: "${host}" accepts connections from other machines, and every one of them could read the metrics. Set a \`token\`, ` +
    'which Prometheus sends as `Authorization: Bearer`, or set `open: true` to allow this';
  return [{ path: ['token'], message }];
}

/** Whether an address, or the name in a `Host` header, is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
