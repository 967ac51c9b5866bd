import { definePlugin, Transports } from '@plugboard/kernel';
import { checkConfig } from './check-config.js';
import { registerClasses } from './classes.js';
import { configSchema } from './config.js';
import { HttpTransport } from './http-transport.js';

export { parseJsonObject } from './body/request-bodies.js';
export { type ErrorFormatter, ErrorFormatters } from './errors/error-format.js';
export * from './errors/http-error.js';
export * from './routing/routes.js';
export * from './routing/upgrades.js';

export default definePlugin({
  name: '@plugboard/transport-http',
  apiVersion: 1,
  summary: 'Serves HTTP: the server on which other transports register their routes',
  configSchema,
  fixedOptions: ['host', 'port'],
  credentials: {
    // Not the name of the entry `auth.bearer`.
    patterns: [/(?<!auth\.)[Bb]earer\s+[^\s"\\]+/],
    fields: ['authorization', 'cookie', 'sec-websocket-protocol'],
  },
  check: checkConfig,
  register(ctx) {
    registerClasses(ctx);
    const transport = ctx.container.resolve(HttpTransport);
    ctx.contribute(Transports, transport);
    return transport;
  },
});
