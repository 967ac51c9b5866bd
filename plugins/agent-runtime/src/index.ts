import { AgentRuntimes, definePlugin, Interceptors, ModelConnectors, SessionStores, ToolSources } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { checkConfig } from './directory/check-config.js';
import { Runtime } from './runtime.js';

export default definePlugin({
  name: '@plugboard/agent-runtime',
  apiVersion: 1,
  summary: 'Runs agents: the directory, the tool-calling loop and sessions',
  configSchema,
  check: checkConfig,
  register(ctx) {
    const runtime = new Runtime({
      settings: ctx.config,
      log: ctx.log,
      clock: ctx.clock,
      ids: ctx.ids,
      budgets: ctx.budgets,
      host: ctx.host,
      models: ctx.extensions(ModelConnectors),
      tools: ctx.extensions(ToolSources),
      stores: ctx.extensions(SessionStores),
      interceptors: ctx.extensions(Interceptors),
      resolvePath: ctx.resolvePath,
      hold: ctx.hold,
    });
    ctx.contribute(AgentRuntimes, runtime);
    return runtime;
  },
});
