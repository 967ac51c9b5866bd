import type { ServerProcess } from '../../attacks/support/server-process.js';

/** The configuration of a plugin that notes how long the event loop of its server stands still. */
export const LOOP_WATCH = '  loop-watch: { use: ./loop-watch.mjs }\n';

/**
 * It measures both the time between two ticks of a timer and the processor time that the thread of
 * the event loop used in it. The smaller of both is what the server itself took: a busy machine
 * makes the first longer, and much short work the second.
 */
export const LOOP_WATCH_FILES = {
  'loop-watch.mjs': `
    import { definePlugin } from '@plugboard/kernel';
    import { PerformanceObserver } from 'node:perf_hooks';
    import { HttpRoutes } from '@plugboard/transport-http';
    const [TICK, LEAST] = [10, 50];
    export default definePlugin({
      name: 'loop-watch', apiVersion: 1, summary: 'Measures', configSchema: { type: 'object', properties: {} },
      register(ctx) {
        let stalls = [];
        let collecting = 0;
        new PerformanceObserver((list) => {
          for (const { duration } of list.getEntries()) collecting += duration;
        }).observe({ entryTypes: ['gc'] });
        let at = performance.now();
        let used = process.threadCpuUsage();
        const tick = () => {
          const now = performance.now();
          const gap = now - at - TICK;
          if (gap >= LEAST) {
            const { user, system } = process.threadCpuUsage(used);
            stalls.push({ end: Date.now(), gap, held: Math.min(gap, (user + system) / 1000), collecting: Math.round(collecting) });
            collecting = 0;
          }
          at = now;
          used = process.threadCpuUsage();
        };
        let timer;
        ctx.contribute(HttpRoutes, {
          method: 'GET', path: '/loop-watch', access: 'public', body: 'none', startsWork: false,
          handle() {
            const noted = stalls;
            stalls = [];
            return { status: 200, body: noted };
          },
        });
        return { start: () => void (timer = setInterval(tick, TICK)), stop: () => clearInterval(timer) };
      },
    });
  `,
};

/** A time in which the event loop of a server stood still. Milliseconds. */
export interface Stall {
  /** When it ended: `Date.now()`. */
  readonly end: number;
  readonly gap: number;
  /** The processor time of it. */
  readonly held: number;
  /** The time of garbage collections since the stall before. */
  readonly collecting: number;
}

/** The stalls since the last call. */
export async function stallsOf(server: ServerProcess): Promise<readonly Stall[]> {
  const { text } = await server.request('/loop-watch');
  return JSON.parse(text);
}
