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
