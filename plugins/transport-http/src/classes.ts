import { AgentRuntimes, AuthProviders, type PluginContext } from '@plugboard/kernel';
import type { Reconfiguration } from '@plugboard/kernel/contracts';
import { CONFIG } from '@plugboard/kernel/injection';
import { HOLD, HttpApplication, ROUTES, UPGRADES } from './application/application.js';
import { RequestBodies } from './body/request-bodies.js';
import type { HttpConfig } from './config.js';
import { ERROR_FORMATTERS, ErrorBodies, ErrorFormatters } from './errors/error-format.js';
import { AccessLog } from './exchange/access-log.js';
import { Exchanges } from './exchange/exchanges.js';
import { LogThrottle } from './exchange/log-throttle.js';
import { AllowedHosts } from './gate/allowed-hosts.js';
import { AUTH_PROVIDERS, Authentication } from './gate/authentication.js';
import { Cors } from './gate/cors.js';
import { Gate } from './gate/gate.js';
import { RateLimits, RUNTIMES } from './gate/rate-limits.js';
import { APPLICATION_OF, HttpTransport } from './http-transport.js';
import { HeapGuard } from './limits/heap-guard.js';
import { MemoryLimits } from './limits/memory-limits.js';
import { HttpRoutes } from './routing/routes.js';
import { HttpUpgrades } from './routing/upgrades.js';
import { ClientErrorHandler } from './server/client-error-handler.js';
import { Connections } from './server/connections.js';

/**
 * Registers what the entry reads, and the plugin's classes, in the container of an entry: one
 * instance of each.
 */
export function registerClasses({ container, extensions, hold }: PluginContext<HttpConfig>): void {
  container
    .register(ROUTES, { useValue: extensions(HttpRoutes) })
    .register(UPGRADES, { useValue: extensions(HttpUpgrades) })
    .register(AUTH_PROVIDERS, { useValue: extensions(AuthProviders) })
    .register(RUNTIMES, { useValue: extensions(AgentRuntimes) })
    .register(ERROR_FORMATTERS, { useValue: extensions(ErrorFormatters) })
    .register(HOLD, { useValue: hold })
    .register(APPLICATION_OF, { useValue: (next: Reconfiguration<HttpConfig>) => applicationOf(next, container) })
    .registerSingleton(AccessLog)
    .registerSingleton(AllowedHosts)
    .registerSingleton(Authentication)
    .registerSingleton(ClientErrorHandler)
    .registerSingleton(Connections)
    .registerSingleton(Cors)
    .registerSingleton(ErrorBodies)
    .registerSingleton(Exchanges)
    .registerSingleton(Gate)
    .registerSingleton(HeapGuard)
    .registerSingleton(HttpApplication)
    .registerSingleton(HttpTransport)
    .registerSingleton(RequestBodies)
    .registerSingleton(LogThrottle)
    .registerSingleton(MemoryLimits)
    .registerSingleton(RateLimits);
}

/**
 * Makes the application of a changed configuration. It shares with the one before what lives longer
 * than a configuration.
 */
function applicationOf(next: Reconfiguration<HttpConfig>, container: PluginContext['container']): HttpApplication {
  return container
    .createChildContainer()
    .register(CONFIG, { useValue: next.config })
    .register(ROUTES, { useValue: next.extensions(HttpRoutes) })
    .register(UPGRADES, { useValue: next.extensions(HttpUpgrades) })
    .registerSingleton(AllowedHosts)
    .registerSingleton(Cors)
    .registerSingleton(Gate)
    .registerSingleton(RequestBodies)
    .registerSingleton(HttpApplication)
    .resolve(HttpApplication);
}
