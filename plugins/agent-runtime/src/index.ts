import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { createGraph } from '@plugboard/kernel/injection';
import { configSchema } from './config.js';
import { checkConfig } from './engine/directory/check-config.js';
import { Runtime } from './runtime.js';

export default definePlugin({
  name: '@plugboard/agent-runtime',
  apiVersion: 1,
  summary: 'Runs agents: the directory, the tool-calling loop and sessions',
  configSchema,
  check: checkConfig,
  register(ctx) {
    const runtime = createGraph(ctx, Runtime);
    ctx.contribute(AgentRuntimes, runtime);
    return runtime;
  },
});
