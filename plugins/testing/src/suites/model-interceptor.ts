import { type ModelCall, OPEN } from '@plugboard/kernel/contracts';
import { modelRequest } from './model-connector.js';

/**
 * A request to a model connection, as a model interceptor receives it: by default the first one of
 * a turn on an open server, with one user message.
 *
 * ```ts
 * const interceptor = testContext(plugin).contributed(ModelInterceptors);
 * const answer = interceptor(testModelCall(), async function* () {
 *   yield [{ type: 'text', text: 'Hello' }, { type: 'end', reason: 'stop' }];
 * });
 * ```
 *
 * @experimental
 */
export function testModelCall(overrides: Partial<ModelCall> = {}): ModelCall {
  return {
    turnId: 'turn_1',
    agent: 'assistant',
    principal: OPEN,
    session: undefined,
    step: 1,
    attempt: 1,
    connection: 'fast',
    model: 'small-1',
    request: modelRequest('Hello'),
    signal: new AbortController().signal,
    ...overrides,
  };
}
