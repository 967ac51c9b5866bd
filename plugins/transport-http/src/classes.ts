import type { PluginContext } from '@plugboard/kernel';
import { HttpApplication } from './application/application.js';
import { JsonBodies } from './body/json-body.js';
import { ErrorBodies } from './errors/error-format.js';
import { AccessLog } from './exchange/access-log.js';
import { Exchanges } from './exchange/exchanges.js';
import { LogThrottle } from './exchange/log-throttle.js';
import { AllowedHosts } from './gate/allowed-hosts.js';
import { Authentication } from './gate/authentication.js';
import { Cors } from './gate/cors.js';
import { Gate } from './gate/gate.js';
import { RateLimits } from './gate/rate-limits.js';
import { HttpTransport } from './http-transport.js';
import { HeapGuard } from './limits/heap-guard.js';
import { MemoryLimits } from './limits/memory-limits.js';
import { ClientErrorHandler } from './server/client-error-handler.js';
import { Connections } from './server/connections.js';

/** Registers the plugin's classes in the container of an entry, one instance of each. */
export function registerClasses(container: PluginContext['container']): void {
  container
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
    .registerSingleton(JsonBodies)
    .registerSingleton(LogThrottle)
    .registerSingleton(MemoryLimits)
    .registerSingleton(RateLimits);
}
