import { definePlugin, ToolSources } from '@plugboard/kernel';

/** The calls that run now. */
export const running = new Set<string>();

/** A tool that works until it is aborted. */
export default definePlugin({
  name: 'stubborn-tool',
  apiVersion: 1,
  summary: 'Offers a tool that works until it is aborted',
  configSchema: { type: 'object', properties: {} },
  register(ctx) {
    ctx.contribute(ToolSources, {
      single: true,
      tools: () => [
        {
          name: 'work',
          description: 'Works.',
          inputSchema: { type: 'object', properties: {} },
          effect: 'read',
          run: async (_, { turnId, signal }) => {
            running.add(turnId);
            await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
            running.delete(turnId);
            return 'stopped';
          },
        },
      ],
    });
  },
});
