import { definePlugin, ModelConnectors } from '@plugboard/kernel';
import { configSchema, problemsOf } from './config.js';
import { KEY_PATTERNS } from './failure/redactor.js';
import { OpenAiConnector } from './openai-connector.js';

export default definePlugin({
  name: '@plugboard/model-openai',
  apiVersion: 1,
  summary: 'Connects to any model server that speaks chat completions',
  configSchema,
  credentials: { patterns: KEY_PATTERNS },
  check: problemsOf,
  register(ctx) {
    const connector = new OpenAiConnector(ctx.config, ctx.clock, ctx.ids);
    ctx.contribute(ModelConnectors, connector);
    return connector;
  },
});
