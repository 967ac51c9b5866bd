import { AuthProviders, definePlugin, Transports } from '@plugboard/kernel';
import { ROUTES } from './application.js';
import { AUTH_PROVIDERS } from './authentication.js';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { Exchanges } from './exchanges.js';
import { HttpTransport } from './http-transport.js';
import { HttpRoutes } from './routes.js';

export * from './errors.js';
export * from './ignored-params.js';
export * from './named-agent.js';
export * from './request-faults.js';
export * from './request-fields.js';
export * from './request-metadata.js';
export * from './routes.js';
export * from './session-word.js';
export { httpErrorOf } from './turn-failure.js';

export default definePlugin({
  name: '@plugboard/transport-http',
  apiVersion: 1,
  summary: 'The HTTP server that other transports open their routes on',
  configSchema,
  check: checkConfig,
  register(ctx) {
    ctx.container.register(ROUTES, { useValue: ctx.extensions(HttpRoutes) });
    ctx.container.register(AUTH_PROVIDERS, { useValue: ctx.extensions(AuthProviders) });
    ctx.container.registerSingleton(Exchanges);
    const transport = ctx.container.resolve(HttpTransport);
    ctx.contribute(Transports, transport);
    return transport;
  },
});
