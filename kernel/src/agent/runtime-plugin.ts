import { definePlugin } from '../host/plugin.js';
import { HOST } from '../host/tokens.js';
import { checkSettings } from './check-settings.js';
import { AgentRuntimes } from './points/agent-runtime.js';
import { Interceptors } from './points/interceptor.js';
import { ModelConnectors } from './points/model-connector.js';
import { SessionStores } from './points/session-store.js';
import { ToolSources } from './points/tool-source.js';
import { Runtime } from './runtime.js';
import { runtimeSchema } from './settings.js';

/** The agent runtime as a plugin: bundled with the kernel, and otherwise like any other. */
export const agentRuntimePlugin = definePlugin({
  name: '@plugboard/kernel/agent-runtime',
  apiVersion: 1,
  summary: 'Runs agents: directory, loop, sessions',
  configSchema: runtimeSchema,
  check: checkSettings,
  register(ctx) {
    const runtime = new Runtime({
      settings: ctx.config,
      log: ctx.log,
      clock: ctx.clock,
      ids: ctx.ids,
      host: ctx.container.resolve(HOST),
      models: ctx.extensions(ModelConnectors),
      tools: ctx.extensions(ToolSources),
      stores: ctx.extensions(SessionStores),
      interceptors: ctx.extensions(Interceptors),
      resolvePath: ctx.resolvePath,
    });
    ctx.contribute(AgentRuntimes, runtime);
    return runtime;
  },
});
