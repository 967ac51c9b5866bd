import type { ServerProcess } from './server-process.js';

/** The configuration of a plugin that measures how long the event loop of its server is held. */
export const LOOP_DELAY = 'plugins: { loop-delay: { use: ./loop-delay.mjs } }\n';

export const LOOP_DELAY_FILES = {
  'loop-delay.mjs': `
    import { monitorEventLoopDelay } from 'node:perf_hooks';
    import { definePlugin } from '@plugboard/kernel';
    import { HttpRoutes } from '@plugboard/transport-http';
    export default definePlugin({
      name: 'loop-delay', apiVersion: 1, summary: 'Measures', configSchema: { type: 'object', properties: {} },
      register(ctx) {
        const histogram = monitorEventLoopDelay({ resolution: 5 });
        ctx.contribute(HttpRoutes, {
          method: 'GET', path: '/loop-delay', access: 'public', body: 'none', startsWork: false,
          handle() {
            const longest = histogram.max / 1e6;
            histogram.reset();
            return { status: 200, body: { longest } };
          },
        });
        return { start: () => void histogram.enable(), stop: () => void histogram.disable() };
      },
    });
  `,
};

/** The longest time in milliseconds that the event loop was held since the last call. */
export async function longestDelay(server: ServerProcess): Promise<number> {
  const { text } = await server.request('/loop-delay');
  return JSON.parse(text).longest;
}
