import { AgentRuntimes, defineExtensionPoint, type PluginContext } from '@plugboard/kernel';
import { ResponseService } from './response-service.js';

/**
 * The service that the transports of the protocol share. Discipline: each of them contributes one,
 * and all use the first in file order, so that a response created on one transport is found on
 * another.
 */
export const ResponseServices = defineExtensionPoint<ResponseService>('open-responses.service', { discipline: 'in-order' });

/**
 * Contributes a service for this entry. @returns the service that all entries share; may be called
 * once the server runs.
 */
export function contributeResponses(ctx: PluginContext<unknown>): () => ResponseService {
  const { clock, ids, log } = ctx;
  const runtimes = ctx.extensions(AgentRuntimes);
  const own = new ResponseService({ runtime: () => runtimes.one(), clock, ids, log });
  ctx.contribute(ResponseServices, own);
  const services = ctx.late(ResponseServices);
  return () => services.all()[0]?.value ?? own;
}
