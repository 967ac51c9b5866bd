import type { HostView } from '@plugboard/kernel';
import { ManualClock, testContext } from '@plugboard/testing';
import type { Test } from 'tap';
import plugin from '../src/index.js';
import { Samples } from './samples.js';

export const signal = new AbortController().signal;

/** A started entry on a free port, until the test is over. */
export async function startExporter(t: Test, config: object = {}, host?: HostView) {
  const clock = new ManualClock();
  const ctx = testContext(plugin, { entry: 'plugins.metrics', ...(host && { host }), config: { port: 0, ...config }, clock });
  t.teardown(() => ctx.lifecycle.stop?.(signal));
  await ctx.lifecycle.start?.(signal);
  const address = String(ctx.logs.find(({ msg }) => msg === 'listening')?.address);
  return {
    ctx,
    clock,
    address,
    port: Number(new URL(address).port),
    /** What a scrape finds, after the page of the one before has become old. */
    scrape: async () => {
      clock.advance(1_000);
      return new Samples(await (await fetch(address)).text());
    },
  };
}
