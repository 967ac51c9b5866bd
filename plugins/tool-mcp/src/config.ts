import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    command: {
      type: 'string',
      description:
        'The program that is the MCP server: a name on the `PATH`, or a path; `./` and `../` are relative to the configuration file.',
      minLength: 1,
      examples: ['npx', './mcp/server.py'],
    },
    args: {
      type: 'array',
      items: { type: 'string' },
      description: 'Its arguments, one by one. No shell reads them.',
      default: [],
      examples: [['-y', '@modelcontextprotocol/server-filesystem', './data']],
    },
    env: {
      type: 'object',
      additionalProperties: { type: 'string', secret: true },
      description: 'Variables for its environment, beside the few that every program needs, such as `PATH` and `HOME`.',
      default: {},
    },
    cwd: {
      type: 'string',
      description: 'The folder that it runs in, relative to the configuration file.',
      minLength: 1,
      default: '.',
    },
    forward: {
      enum: ['principal'],
      description: 'With `principal`, each call tells the server who calls, in its `_meta`. Left out, it does not.',
    },
  },
  required: ['command'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type McpConfig = Infer<typeof configSchema>;
