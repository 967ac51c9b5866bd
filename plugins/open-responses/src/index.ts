import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { ResponseService, ResponseServices } from './service/response-service.js';

export default definePlugin({
  name: '@plugboard/open-responses',
  apiVersion: 1,
  summary: 'Serves the Responses API to the transports responses and websocket',
  configSchema,
  register(ctx) {
    const { clock, ids, log } = ctx;
    const runtimes = ctx.extensions(AgentRuntimes);
    const service = new ResponseService({ runtime: () => runtimes.one(), clock, ids, log });
    ctx.contribute(ResponseServices, service);
    return service;
  },
});

export { typeOfEvent } from './events/json-text.js';
export * from './events/outcome.js';
export * from './events/response-encoder.js';
export * from './events/response-object.js';
export * from './items/input-messages.js';
export { connectionForTextOnly } from './items/input-parts.js';
export { LiveResponse, type ResponseEnd } from './live/live-response.js';
export { EventReader } from './live/reader.js';
export { parseCompaction, parseRequest, unsupported } from './request/parse-request.js';
export * from './request/request.js';
export { type ConnectionMemory, MOST_LANES } from './service/connection-memory.js';
export type { CallerConnection, PlannedResponse, ResponseCaller } from './service/response-plan.js';
export * from './service/response-service.js';
export { isResponseId, type StoredResponse } from './service/stored-response.js';
