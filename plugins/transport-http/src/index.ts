import { AuthProviders, definePlugin, Transports } from '@plugboard/kernel';
import { ROUTES } from './application.js';
import { AUTH_PROVIDERS } from './authentication.js';
import { configSchema } from './config.js';
import { Exchanges } from './exchanges.js';
import { HttpTransport } from './http-transport.js';
import { isLoopback } from './loopback.js';
import { HttpRoutes } from './routes.js';

export * from './errors.js';
export * from './routes.js';
export { httpErrorOf } from './turn-failure.js';

export default definePlugin({
  name: '@plugboard/transport-http',
  apiVersion: 1,
  summary: 'The HTTP server that other transports open their routes on',
  configSchema,
  check: ({ host }, check) =>
    isLoopback(host) || check.entries('auth').length > 0 || check.literal('auth') === 'open'
      ? []
      : [
          {
            path: ['host'],
            message:
              `"${host}" lets other machines in while nobody is asked for a credential: configure a provider under ` +
              '`auth`, such as `bearer`, or write `auth: open` to say that this is meant',
          },
        ],
  register(ctx) {
    ctx.container.register(ROUTES, { useValue: ctx.extensions(HttpRoutes) });
    ctx.container.register(AUTH_PROVIDERS, { useValue: ctx.extensions(AuthProviders) });
    ctx.container.registerSingleton(Exchanges);
    const transport = ctx.container.resolve(HttpTransport);
    ctx.contribute(Transports, transport);
    return transport;
  },
});
