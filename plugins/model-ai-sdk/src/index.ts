import { definePlugin, ModelConnectors } from '@plugboard/kernel';
import { AiSdkConnector } from './ai-sdk-connector.js';
import { configSchema, problemsOf } from './config.js';
import { KEY_PATTERNS } from './failure/failures.js';

export default definePlugin({
  name: '@plugboard/model-ai-sdk',
  apiVersion: 1,
  summary: 'Connects to models in their own format, through a provider package of the AI SDK',
  configSchema,
  credentials: { patterns: KEY_PATTERNS },
  check: (config, { resolvePath }) => problemsOf(config, resolvePath),
  register(ctx) {
    const { config, clock, entry, ids, log } = ctx;
    const connector = new AiSdkConnector(config, { clock, entry, ids, log, folder: ctx.resolvePath('.') });
    ctx.contribute(ModelConnectors, connector);
    return connector;
  },
});
