import { AuthProviders, definePlugin, Transports } from '@plugboard/kernel';
import { ROUTES, UPGRADES } from './application/application.js';
import { checkConfig } from './check-config.js';
import { registerClasses } from './classes.js';
import { configSchema } from './config.js';
import { ERROR_FORMATTERS, ErrorFormatters } from './errors/error-format.js';
import { AUTH_PROVIDERS } from './gate/authentication.js';
import { HttpTransport } from './http-transport.js';
import { HttpRoutes } from './routing/routes.js';
import { HttpUpgrades } from './routing/upgrades.js';

export { parseJsonObject } from './body/json-body.js';
export { type ErrorFormatter, ErrorFormatters } from './errors/error-format.js';
export * from './errors/http-error.js';
export * from './routing/routes.js';
export * from './routing/upgrades.js';

export default definePlugin({
  name: '@plugboard/transport-http',
  apiVersion: 1,
  summary: 'Serves HTTP: the server on which other transports register their routes',
  configSchema,
  credentials: {
    // Not the name of the entry `auth.bearer`.
    patterns: [/(?<!auth\.)[Bb]earer\s+[^\s"\\]+/],
    fields: ['authorization', 'cookie', 'sec-websocket-protocol'],
  },
  check: checkConfig,
  register(ctx) {
    ctx.container.register(ROUTES, { useValue: ctx.extensions(HttpRoutes) });
    ctx.container.register(UPGRADES, { useValue: ctx.extensions(HttpUpgrades) });
    ctx.container.register(AUTH_PROVIDERS, { useValue: ctx.extensions(AuthProviders) });
    ctx.container.register(ERROR_FORMATTERS, { useValue: ctx.extensions(ErrorFormatters) });
    registerClasses(ctx.container);
    const transport = ctx.container.resolve(HttpTransport);
    ctx.contribute(Transports, transport);
    return transport;
  },
});
