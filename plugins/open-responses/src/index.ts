import { definePlugin } from '@plugboard/kernel';
import { createGraph } from '@plugboard/kernel/injection';
import { configSchema } from './config.js';
import { ResponseService, ResponseServices } from './service/response-service.js';

export default definePlugin({
  name: '@plugboard/open-responses',
  apiVersion: 1,
  summary: 'Serves the Responses API to the transports responses and websocket',
  configSchema,
  fixedOptions: ['summaryKey'],
  register(ctx) {
    const service = createGraph(ctx, ResponseService);
    ctx.contribute(ResponseServices, service);
    return service;
  },
});

export { typeOfEvent } from './events/json-text.js';
export { outcomeOfFinish } from './events/outcome.js';
export { type EndedAnswer, replayEvents } from './events/replay.js';
export { turnFacts } from './events/turn-facts.js';
export { type InputMessages, messagesOf, namingItems } from './items/input-messages.js';
export { connectionForTextOnly } from './items/input-parts.js';
export type { LiveResponse } from './live/live-response.js';
export { inputParts } from './request/input-items.js';
export { parseCompaction, parseRequest, unsupported } from './request/parse-request.js';
export type { ResponseRequest } from './request/request.js';
export { type ConnectionMemory, MAX_STREAMS } from './service/connection-memory.js';
export { responseNotFound } from './service/response-errors.js';
export { isCodex, type PlannedResponse } from './service/response-plan.js';
export { type ResponseService, ResponseServices, type ResumedResponse } from './service/response-service.js';
export { isResponseId } from './service/stored-responses.js';
