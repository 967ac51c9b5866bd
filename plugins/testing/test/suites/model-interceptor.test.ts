import type { ModelInterceptor } from '@plugboard/kernel/contracts';
import t from 'tap';
import { modelRequest, testModelCall } from '../../src/index.js';

t.test('a call for a model interceptor has all its parts, and those that the test gives', async (t) => {
  const interceptor: ModelInterceptor = (call, next) => next({ ...call, request: { ...call.request, messages: [] } });
  const request = modelRequest('Hello', { headers: {} });
  let passed: unknown;
  const answer = interceptor(testModelCall({ step: 2, request }), async function* (call) {
    passed = call;
    yield [{ type: 'end', reason: 'stop' }];
  });
  const batches: unknown[] = [];
  for await (const batch of answer) batches.push(batch);
  t.same(batches, [[{ type: 'end', reason: 'stop' }]]);
  t.match(passed, { turnId: 'turn_1', agent: 'assistant', step: 2, attempt: 1, connection: 'fast', request: { messages: [] } });
  t.not(testModelCall().request.headers, testModelCall().request.headers, 'headers may be added');
});
