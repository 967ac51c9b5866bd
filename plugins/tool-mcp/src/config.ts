import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    command: {
      type: 'string',
      description:
        'A server to run: a name on the `PATH`, or a path; `./` and `../` are relative to the configuration file. Set this or `url`.',
      minLength: 1,
      examples: ['npx', './mcp/server.py'],
    },
    url: {
      type: 'string',
      format: 'url',
      description: 'A server to reach over HTTP: its MCP address. It may be private. Set this or `command`.',
      examples: ['https://mcp.example.com/mcp'],
    },
    headers: {
      type: 'object',
      additionalProperties: { type: 'string', minLength: 1, secret: true },
      description: 'Only with `url`: headers of each request, such as `Authorization`.',
    },
    auth: {
      type: 'object',
      properties: {
        clientId: { type: 'string', minLength: 1, description: 'The client, as it is registered at the authorization server.' },
        clientSecret: { type: 'string', minLength: 1, secret: true, description: 'Its secret. Set this or `privateKey`.' },
        privateKey: {
          type: 'string',
          minLength: 1,
          secret: true,
          description:
            'Its private key, as PEM: RSA, or an elliptic curve (P-256, P-384, P-521). It signs a JWT for each token request.',
        },
        algorithm: {
          enum: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
          description: 'How the key signs. Default: RS256, or the one of its curve.',
        },
        issuer: {
          type: 'string',
          format: 'url',
          description:
            'The only authorization server that may see the secret. It may be private. Default: the first one that the server ' +
            'named, which `acceptedFile` remembers.',
          examples: ['https://login.example.com'],
        },
        scopes: {
          type: 'array',
          items: { type: 'string', pattern: '^[!#-\\[\\]-~]+$' },
          minItems: 1,
          maxItems: 100,
          description: 'The scopes to ask for. Default: those that the server names.',
          examples: [['tools:read']],
        },
      },
      required: ['clientId'],
      additionalProperties: false,
      description: 'Only with `url`: signs in with OAuth 2 client credentials. Default: no sign-in.',
    },
    allowPrivate: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      description:
        'Only with `url`: hosts with a private address that its OAuth metadata may name, such as `login.internal` or, for one ' +
        'port, `10.0.0.7:8080`. The host of `url` is allowed.',
    },
    pin: {
      type: 'boolean',
      description:
        'Only with `url`: offers only tools as they were accepted, the first list or with `plugboard tools accept`. Default: false.',
    },
    acceptedFile: {
      type: 'string',
      minLength: 1,
      description:
        'Only with `url`: remembers the authorization server of `auth`, and the tools of `pin`. Relative to the configuration ' +
        'file. Default: `./data/accepted-tools.json`.',
    },
    forward: {
      enum: ['principal'],
      description:
        '`principal` sends the caller’s project, token name, subject and claims in the `_meta` of each call. Default: not sent.',
    },
    keyed: {
      type: 'boolean',
      description:
        'The server acts once on calls with the same `_meta["plugboard/idempotency-key"]`. A call whose answer is lost is then ' +
        'repeated, also if it writes. Default: false.',
    },
    args: {
      type: 'array',
      items: { type: 'string' },
      description:
        'Its arguments. No shell interprets them. Other users of the machine can see them: pass secrets in `env`. ' +
        'This and all below: only with `command`.',
      examples: [['-y', '@modelcontextprotocol/server-filesystem', './data']],
    },
    env: {
      type: 'object',
      additionalProperties: { type: 'string', secret: true },
      description:
        'Additional environment variables. Of the server’s own environment only basic variables such as `PATH` and `HOME` ' +
        'are passed on.',
    },
    cwd: {
      type: 'string',
      description: 'Its working folder, relative to the configuration file. Default: the folder of that file.',
      minLength: 1,
    },
    user: {
      type: 'string',
      description: 'The user to run it as: a name of `/etc/passwd`, or `uid:gid`. Plugboard must be allowed to change users.',
      pattern: '^([a-z_][a-z0-9_-]*|[0-9]+:[0-9]+)$',
      examples: ['mcp-files', '1500:1500'],
    },
    limits: {
      type: 'object',
      properties: {
        addressSpace: {
          type: 'string',
          format: 'size',
          description: 'Maximum address space of each of its processes. For Node.js set `node.memory`.',
        },
        cpuTime: {
          type: 'string',
          format: 'duration',
          description: 'Maximum CPU time of each of its processes, in whole seconds. The system then ends the process.',
        },
        openFiles: { type: 'integer', minimum: 16, description: 'Maximum number of open files of each of its processes.' },
        processes: {
          type: 'integer',
          minimum: 1,
          description: 'Maximum number of processes and threads of its user. Useful together with `user`.',
        },
      },
      additionalProperties: false,
      description: 'Resource limits, set by the operating system (`ulimit`). Not on Windows. Default: those of Plugboard.',
    },
    node: {
      type: 'object',
      properties: {
        read: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          description:
            'Files and folders that it may read, relative to the configuration file: its program and packages, and its data.',
          default: [],
        },
        write: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          description: 'Files and folders that it may write, relative to the configuration file.',
          default: [],
        },
        childProcesses: { type: 'boolean', description: 'Whether it may start processes.', default: false },
        memory: { type: 'string', format: 'size', description: 'Maximum size of its JavaScript heap.' },
      },
      additionalProperties: false,
      description:
        'Starts a server in Node.js under its permission model, which refuses all other files, processes, workers and ' +
        'native addons.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type McpConfig = Infer<typeof configSchema>;
