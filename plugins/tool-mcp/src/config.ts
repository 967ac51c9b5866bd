import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    command: {
      type: 'string',
      description:
        'The program to run as MCP server: a name on the `PATH`, or a path. `./` and `../` are relative to the configuration file.',
      minLength: 1,
      examples: ['npx', './mcp/server.py'],
    },
    args: {
      type: 'array',
      items: { type: 'string' },
      description: 'Its arguments, as a list. No shell interprets them.',
      default: [],
      examples: [['-y', '@modelcontextprotocol/server-filesystem', './data']],
    },
    env: {
      type: 'object',
      additionalProperties: { type: 'string', secret: true },
      description:
        'Additional environment variables. Of the server’s own environment only basic variables such as `PATH` and `HOME` are passed on.',
      default: {},
    },
    cwd: {
      type: 'string',
      description: 'Its working folder, relative to the configuration file.',
      minLength: 1,
      default: '.',
    },
    forward: {
      enum: ['principal'],
      description:
        '`principal` sends the caller’s project, token name, subject and claims in the `_meta` of each call. Default: not sent.',
    },
  },
  required: ['command'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type McpConfig = Infer<typeof configSchema>;
