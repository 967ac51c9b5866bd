import { definePlugin } from '@plugboard/kernel';
import { ModelInterceptors } from '@plugboard/kernel/contracts';
import { HttpRoutes } from '@plugboard/transport-http';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { Usage } from './usage.js';

export default definePlugin({
  name: '@plugboard/plugin-usage',
  apiVersion: 1,
  summary: 'Counts tokens and money by agent, token and project, and keeps to budgets',
  configSchema,
  fixedOptions: ['currency'],
  check: checkConfig,
  register(ctx) {
    const usage = new Usage(ctx);
    ctx.contribute(ModelInterceptors, (call, next) => usage.charging.intercept(call, next));
    ctx.contribute(HttpRoutes, usage.route);
    return usage;
  },
});
