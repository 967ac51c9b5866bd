import { definePlugin, Transports } from '@plugboard/kernel';
import { createGraph } from '@plugboard/kernel/injection';
import { HttpApplication } from './application/application.js';
import { RequestBodies } from './body/request-bodies.js';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { AccessLog } from './exchange/access-log.js';
import { ErrorBodies } from './exchange/error-bodies.js';
import { Exchanges } from './exchange/exchanges.js';
import { LogThrottle } from './exchange/log-throttle.js';
import { Replies } from './exchange/replies.js';
import { AllowedHosts } from './gate/allowed-hosts.js';
import { Authentication } from './gate/authentication.js';
import { Cors } from './gate/cors.js';
import { Gate } from './gate/gate.js';
import { RequestLimits } from './gate/request-limits.js';
import { Revocation } from './gate/revocation.js';
import { HttpTransport } from './http-transport.js';
import { HeapGuard } from './limits/heap-guard.js';
import { HttpHandlers } from './routing/handler.js';
import { ClientErrorHandler } from './server/client-error-handler.js';
import { Connections } from './server/connections.js';
import { EarlyReplies } from './server/early-replies.js';
import { EmbeddedHandler } from './server/embedded-handler.js';

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
    const transport = createGraph(ctx, HttpTransport, [
      AccessLog,
      AllowedHosts,
      Authentication,
      ClientErrorHandler,
      Connections,
      Cors,
      EarlyReplies,
      EmbeddedHandler,
      ErrorBodies,
      Exchanges,
      Gate,
      HeapGuard,
      HttpApplication,
      LogThrottle,
      RequestLimits,
      Replies,
      RequestBodies,
      Revocation,
    ]);
    ctx.contribute(Transports, transport);
    if (!ctx.config.listen) ctx.contribute(HttpHandlers, transport.handler);
    return transport;
  },
});
