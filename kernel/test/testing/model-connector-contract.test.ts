import t from 'tap';
import type { ModelConnector, ModelEvent, ModelRequest } from '../../src/index.js';
import { modelConnectorContract, modelRequest } from '../../src/testing/index.js';
import { failing } from './failing.js';

const CLOCK = { name: 'clock', description: 'Tells the time.', inputSchema: { type: 'object' } };
const SAMPLES = { text: modelRequest('Hello'), toolCall: modelRequest('What time is it?', { tools: [CLOCK] }) };

/** Batches of a plain answer. */
const ANSWER: readonly (readonly ModelEvent[])[] = [
  [{ type: 'text', text: 'a "b" ', json: 'a \\"b\\" ' }],
  [{ type: 'reasoning', text: 'so' }],
  [{ type: 'text', text: 'c' }],
  [
    { type: 'usage', usage: { promptTokens: 1, completionTokens: 2, cachedTokens: 0, reasoningTokens: 0 } },
    { type: 'end', reason: 'stop' },
  ],
];
const CALL: readonly (readonly ModelEvent[])[] = [
  [
    { type: 'tool-call', id: 'call_1', name: 'clock', arguments: '{}' },
    { type: 'end', reason: 'tool_calls' },
  ],
];

async function* plainly(request: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
  yield* abortable(request.tools.length > 0 ? CALL : ANSWER, signal);
}

async function* abortable(
  batches: readonly (readonly ModelEvent[])[],
  signal: AbortSignal,
): AsyncGenerator<readonly ModelEvent[]> {
  for (const batch of batches) {
    signal.throwIfAborted();
    yield batch;
  }
}

/** A connector that keeps the contract, with something about it changed. */
function connector(change: Partial<ModelConnector> = {}): ModelConnector {
  return { model: 'm', contextWindow: 1000, input: ['text'], supportsParam: () => true, stream: plainly, ...change };
}

/** The same, which answers the text sample with other batches. */
function answering(...batches: readonly (readonly ModelEvent[])[]): ModelConnector {
  return connector({ stream: (request, signal) => abortable(request.tools.length > 0 ? CALL : batches, signal) });
}

const cases = (broken: ModelConnector) => failing(modelConnectorContract(() => broken, SAMPLES));

const ABOUT = 'says what it is: a model, a context window, and text among what it takes';
const ENDS = 'answers with text, counts tokens in whole numbers, and ends with exactly one `end`';
const JSON_TEXT = 'gives text as JSON only where that decodes to the text';
const WHOLE = 'says the same where nobody reads along';
const LENT = 'leaves the request as it is, its headers apart';
const APART = 'keeps two answers at the same time apart';
const BEFORE = 'throws without an answer when it is aborted before it begins';
const MIDDLE = 'throws soon when it is aborted in the middle of an answer';
const LEAVES = 'lets its reader leave in the middle of an answer';
const CALLS = 'asks for declared tools by whole calls with ids of their own, and ends with `tool_calls`';

t.test('a connector that keeps the contract passes, with or without a sample for tools', async (t) => {
  t.same(await cases(connector()), []);
  t.same(await failing(modelConnectorContract(async () => connector(), { text: SAMPLES.text })), []);
});

t.test('each way to break it is found by the case that speaks of it', async (t) => {
  const end: ModelEvent = { type: 'end', reason: 'stop' };
  const text: ModelEvent = { type: 'text', text: 'a' };

  t.same(await cases(connector({ model: '' })), [ABOUT]);
  t.same(await cases(connector({ contextWindow: Number.NaN })), [ABOUT]);
  t.same(await cases(connector({ input: ['image'] })), [ABOUT]);
  t.same(await cases(answering([text], [text])), [ENDS, WHOLE, APART]);
  t.same(await cases(answering([text], [end], [end])), [ENDS, WHOLE, APART]);
  t.same(await cases(answering([text], [end, text])), [ENDS, WHOLE, APART]);
  t.same(await cases(answering([{ type: 'reasoning', text: 'hm' }], [end])), [ENDS]);
  const usage = { promptTokens: 0.5, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  t.same(await cases(answering([text], [{ type: 'usage', usage }], [end])), [ENDS]);
  t.same(await cases(answering([{ ...text, json: 'b' }], [end])), [JSON_TEXT]);
  const curt = connector({
    async *stream(request, signal) {
      yield* request.incremental ? plainly(request, signal) : abortable([[text], [end]], signal);
    },
  });
  t.same(await cases(curt), [WHOLE]);
  const rude = connector({
    stream(request, signal) {
      (request.messages as unknown[]).push({ role: 'assistant', content: '' });
      return plainly(request, signal);
    },
  });
  t.ok((await cases(rude)).includes(LENT));
  let open = 0;
  const shared = connector({
    async *stream(request, signal) {
      const mixed = open++ > 0;
      try {
        for await (const batch of plainly(request, signal)) yield mixed ? [{ type: 'text', text: 'x' }, ...batch] : batch;
      } finally {
        open--;
      }
    },
  });
  t.same(await cases(shared), [APART]);
  const deaf = connector({ stream: (request) => plainly(request, new AbortController().signal) });
  t.same(await cases(deaf), [BEFORE, MIDDLE]);
});

t.test('a sample that is answered in one batch cannot show what an abort does', async (t) => {
  t.same(await cases(answering(ANSWER.flat())), [MIDDLE, LEAVES]);
});

t.test('a stream without `return` does not notice a reader that leaves', async (t) => {
  const stream: ModelConnector['stream'] = (request, signal) => {
    const events = plainly(request, signal);
    return { [Symbol.asyncIterator]: () => ({ next: () => events.next() }) };
  };
  t.same(await cases(connector({ stream })), [LEAVES]);
});

t.test('tool calls that are no proper calls are found', async (t) => {
  const calling = (...events: ModelEvent[]) =>
    connector({ stream: (request, signal) => abortable(request.tools.length > 0 ? [events] : ANSWER, signal) });
  const call = { type: 'tool-call', id: '1', name: 'clock', arguments: '{}' } as const;
  const end = { type: 'end', reason: 'tool_calls' } as const;
  t.same(await cases(calling(call, { ...call, id: '2' }, end)), []);
  t.same(await cases(calling(end)), [CALLS]);
  t.same(await cases(calling(call, { type: 'end', reason: 'stop' })), [CALLS]);
  t.same(await cases(calling(call, call, end)), [CALLS]);
  t.same(await cases(calling({ ...call, id: '' }, end)), [CALLS]);
  t.same(await cases(calling({ ...call, name: 'other' }, end)), [CALLS]);
});
