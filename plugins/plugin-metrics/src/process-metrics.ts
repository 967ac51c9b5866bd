import { collectDefaultMetrics, Registry } from 'prom-client';

/**
 * Gauges that walk through every open socket at each scrape. Some are also named like counters,
 * which `promtool` refuses.
 */
const OMITTED = ['handles', 'requests', 'resources'].flatMap((kind) => [`nodejs_active_${kind}`, `nodejs_active_${kind}_total`]);

let registry: Registry | undefined;

/**
 * prom-client's own metrics: memory, CPU, garbage collection, the event loop. They are those of the
 * process, and prom-client cannot stop measuring: a process has them once, however often an entry
 * is replaced.
 */
export function processMetrics(): Registry {
  if (registry) return registry;
  registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of OMITTED) registry.removeSingleMetric(name);
  return registry;
}
