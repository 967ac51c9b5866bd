import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { HealthRoutes } from './health.js';
import { statusRoute } from './status.js';

export default definePlugin({
  name: '@plugboard/transport-health',
  apiVersion: 1,
  summary: 'Answers liveness and readiness probes, and tells operators how each entry works',
  configSchema,
  register({ host, clock, budgets, log, extensions, contribute }) {
    const health = new HealthRoutes(host, extensions(AgentRuntimes), log);
    const status = statusRoute({ host, budgets, clock, report: () => health.report() });
    for (const route of [...health.routes, status]) contribute(HttpRoutes, route, route.path);
  },
});
