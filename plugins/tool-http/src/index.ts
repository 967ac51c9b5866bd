import { readFileSync } from 'node:fs';
import { definePlugin, parseSize, ToolSources } from '@plugboard/kernel';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { redactorOf } from './exchange/secrets.js';
import { HttpTools } from './http-tools.js';
import { addressesOf, isUrl } from './load-operations.js';

export default definePlugin({
  name: '@plugboard/tool-http',
  apiVersion: 1,
  summary: 'Offers the operations of an OpenAPI document',
  configSchema,
  check: checkConfig,
  register({ config, resolvePath, log, contribute }) {
    const { openapi, baseUrl, headers, responseLimit } = config;
    const query = new URLSearchParams(baseUrl === undefined ? '' : new URL(baseUrl).search);
    const tools = new HttpTools({
      config,
      log,
      calls: {
        headers,
        addresses: addressesOf(config),
        responseLimit: parseSize(responseLimit),
        redact: redactorOf(headers, query),
      },
    });
    if (!isUrl(openapi)) tools.load(readFileSync(resolvePath(openapi), 'utf8'));
    contribute(ToolSources, tools);
    return tools;
  },
});
