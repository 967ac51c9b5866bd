import { definePlugin, Transports } from '@plugboard/kernel';
import { createGraph } from '@plugboard/kernel/injection';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { HttpTransport } from './http-transport.js';
import { HttpHandlers } from './routing/handler.js';

export { parseJsonObject } from './body/request-bodies.js';
export type { ErrorFormatter, ErrorReply } from './errors/error-format.js';
export * from './errors/http-error.js';
export * from './routing/handler.js';
export * from './routing/middleware.js';
export * from './routing/routes.js';
export * from './routing/upgrades.js';

export default definePlugin({
  name: '@plugboard/transport-http',
  apiVersion: 1,
  summary: 'Serves HTTP: the server on which other transports register their routes',
  configSchema,
  fixedOptions: ['listen', 'host', 'port'],
  credentials: {
    // Not the name of the entry `auth.bearer`.
    patterns: [/(?<!auth\.)[Bb]earer\s+[^\s"\\]+/],
    fields: ['authorization', 'cookie', 'sec-websocket-protocol'],
  },
  check: checkConfig,
  register(ctx) {
    const transport = createGraph(ctx, HttpTransport);
    ctx.contribute(Transports, transport);
    if (!ctx.config.listen) ctx.contribute(HttpHandlers, transport.handler);
    return transport;
  },
});
