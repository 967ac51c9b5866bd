import { definePlugin, defineTool, ToolSources } from '@plugboard/kernel';

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an amount in euros.',
  inputSchema: {
    type: 'object',
    properties: { amount: { type: 'integer', minimum: 1 } },
    required: ['amount'],
    additionalProperties: false,
  },
  effect: 'write',
  run: ({ amount }) => `Refunded ${amount} euros.`,
});

export default definePlugin({
  name: 'refund',
  apiVersion: 1,
  summary: 'Refunds money',
  configSchema: { type: 'object', properties: {} },
  register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: () => [refund] }),
});
