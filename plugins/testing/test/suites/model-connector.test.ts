import { type ModelConnector, ModelError, type ModelEvent, type ModelRequest } from '@plugboard/kernel';
import t from 'tap';
import { modelRequest } from '../../src/index.js';
import { modelConnectorContract } from '../../src/suites/model-connector.js';
import { casesOf, failing } from '../failing.js';

const CLOCK = { name: 'clock', description: 'Returns the time.', inputSchema: { type: 'object' } };
const SAMPLES = { text: modelRequest('Hello'), toolCall: modelRequest('What time is it?', { tools: [CLOCK] }) };

/** Batches of a plain answer. */
const ANSWER: readonly (readonly ModelEvent[])[] = [
  [{ type: 'text', text: 'a "b" ', json: 'a \\"b\\" ' }],
  [{ type: 'reasoning', text: 'so' }],
  [{ type: 'text', text: 'c' }],
  [
    { type: 'usage', usage: { promptTokens: 1, completionTokens: 2, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } },
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

/** A connector that fulfils the contract, changed in one respect. */
function connector(change: Partial<ModelConnector> = {}): ModelConnector {
  return { model: 'm', contextWindow: 1000, input: ['text'], supportsParam: () => true, stream: plainly, ...change };
}

/** A connector that answers the text sample with these batches. */
function answering(...batches: readonly (readonly ModelEvent[])[]): ModelConnector {
  return connector({ stream: (request, signal) => abortable(request.tools.length > 0 ? CALL : batches, signal) });
}

const cases = (broken: ModelConnector) =>
  failing(casesOf((test) => modelConnectorContract(test, { open: () => broken, ...SAMPLES, timeLimit: 200 })));

const MODEL = 'names its model';
const WINDOW = 'states its context window in tokens';
const INPUT = 'accepts text';
const PARAMS = 'says whether it supports a parameter';
const ENDS = 'ends an answer with exactly one `end`';
const TEXT = 'answers with text';
const PIECES = 'streams calls of streamed tools only, as they then are';
const USAGE = 'counts tokens in whole numbers';
const JSON_TEXT = 'yields `json` only if it decodes to `text`';
const WHOLE = 'gives the same text if the answer is not read incrementally';
const UNCHANGED = 'changes nothing of a request except its headers';
const APART = 'keeps concurrent answers apart';
const BEFORE = 'throws if the signal is aborted before the answer';
const DURING = 'throws soon if the signal is aborted during the answer';
const LEAVES = 'ends when the reader leaves during the answer';
const CALLS = 'calls declared tools with unique ids and ends with `tool_calls`';

t.test('passes a correct connector, with or without a sample for tools', async (t) => {
  t.same(await cases(connector()), []);
  t.same(
    await failing(casesOf((test) => modelConnectorContract(test, { open: async () => connector(), text: SAMPLES.text }))),
    [],
  );
});

t.test('finds each broken promise', async (t) => {
  const end: ModelEvent = { type: 'end', reason: 'stop' };
  const text: ModelEvent = { type: 'text', text: 'a' };

  t.same(await cases(connector({ model: '' })), [MODEL]);
  t.same(await cases(connector({ contextWindow: Number.NaN })), [WINDOW]);
  t.same(await cases(connector({ input: ['image'] })), [INPUT]);
  t.same(await cases(connector({ supportsParam: () => undefined as unknown as boolean })), [PARAMS]);
  for (const batches of [
    [[text], [text]],
    [[text], [end], [end]],
    [[text], [end, text]],
  ]) {
    t.same(await cases(answering(...batches)), [ENDS, WHOLE, APART]);
  }
  t.same(await cases(answering([{ type: 'reasoning', text: 'hm' }], [end])), [TEXT]);
  const usage = { promptTokens: 0.5, completionTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  t.same(await cases(answering([text], [{ type: 'usage', usage }], [end])), [USAGE]);
  t.same(await cases(answering([{ ...text, json: 'b' }], [end])), [JSON_TEXT]);
  const shorter = connector({
    async *stream(request, signal) {
      yield* request.incremental ? plainly(request, signal) : abortable([[text], [end]], signal);
    },
  });
  t.same(await cases(shorter), [WHOLE]);
  const changing = connector({
    stream(request, signal) {
      (request.messages as unknown[]).push({ role: 'assistant', content: '' });
      return plainly(request, signal);
    },
  });
  t.ok((await cases(changing)).includes(UNCHANGED));
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
  const ignoresAbort = connector({ stream: (request) => plainly(request, new AbortController().signal) });
  t.same(await cases(ignoresAbort), [BEFORE, DURING]);
});

t.test('needs a sample that is answered in several batches', async (t) => {
  t.same(await cases(answering(ANSWER.flat())), [DURING, LEAVES]);
});

t.test('finds an iterator without `return`', async (t) => {
  const stream: ModelConnector['stream'] = (request, signal) => {
    const events = plainly(request, signal);
    return { [Symbol.asyncIterator]: () => ({ next: () => events.next() }) };
  };
  t.same(await cases(connector({ stream })), [LEAVES]);
});

t.test('finds invalid tool calls', async (t) => {
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

t.test('finds pieces that do not fit their calls', async (t) => {
  const piece = (id: string, text: string) => ({ type: 'tool-call-delta', id, name: 'clock', arguments: text }) as const;
  const call = (id: string) => ({ type: 'tool-call', id, name: 'clock', arguments: '{"a":1}' }) as const;
  const streaming = (isAsked: boolean, ...pieces: ModelEvent[]) =>
    connector({
      stream: (request, signal) => {
        const shown = isAsked && request.streamedTools === undefined ? [] : pieces;
        const events = [...shown, call('1'), call('2'), { type: 'end', reason: 'tool_calls' } as const];
        return abortable(request.tools.length > 0 ? [events] : ANSWER, signal);
      },
    });
  t.same(await cases(streaming(true, piece('1', '{"a"'), piece('2', ''), piece('1', ':1'), piece('2', '{'))), []);
  t.same(await cases(streaming(false, piece('1', '{"a"'))), [PIECES], 'nobody asked for them');
  t.same(await cases(streaming(true, piece('1', '{"b"'))), [PIECES], 'other arguments');
  t.same(await cases(streaming(true, piece('3', '{"a"'))), [PIECES], 'no call');
  t.same(await cases(streaming(true, piece('2', '{"a"'))), [PIECES], 'the second call alone');
});

t.test('finds connectors that retry, or throw other errors', async (t) => {
  const REFUSED = 'throws a `ModelError` if its server refuses, and asks it once';
  const refusing = (error: Error, attempts = 1) =>
    failing(
      casesOf((test) =>
        modelConnectorContract(test, {
          open: () => connector(),
          ...SAMPLES,
          timeLimit: 200,
          failing: () => {
            let count = 0;
            const stream = async function* (request: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
              count += attempts;
              if (count > 0) throw error;
              yield* plainly(request, signal);
            };
            return { connector: connector({ stream }), requests: () => count };
          },
        }),
      ),
    );
  const failure = new ModelError('it answered with status 503.', { retryable: true });
  t.same(await refusing(failure), []);
  t.same(await refusing(failure, 3), [REFUSED]);
  t.same(await refusing(new Error('503')), [REFUSED]);
});

t.test('finds connectors that read ahead without an end, or leave their socket open', async (t) => {
  const STOPS = 'stops reading when its reader does, and closes the socket when it leaves';
  const reading = (isPaced: boolean, closes: boolean) =>
    failing(
      casesOf((test) =>
        modelConnectorContract(test, {
          open: () => connector(),
          ...SAMPLES,
          timeLimit: 400,
          endless: () => {
            let written = 0;
            let isOpen = true;
            const timer = isPaced ? undefined : setInterval(() => written++, 5);
            const stream = async function* (): AsyncGenerator<readonly ModelEvent[]> {
              try {
                for (;;) {
                  written++;
                  yield [{ type: 'text', text: 'more' }];
                }
              } finally {
                isOpen = !closes;
              }
            };
            t.teardown(() => clearInterval(timer));
            return { connector: connector({ stream }), written: () => written, isOpen: () => isOpen };
          },
        }),
      ),
    );
  t.same(await reading(true, true), []);
  t.same(await reading(false, true), [STOPS]);
  t.same(await reading(true, false), [STOPS]);
});
