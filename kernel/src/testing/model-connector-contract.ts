import assert from 'node:assert/strict';
import type { ModelConnector, ModelEvent, ModelRequest } from '../contracts/model-connector.js';
import { type ContractCase, deepFreeze, soon } from './contract.js';

export interface ModelConnectorSamples {
  /** A request that the model answers with text, in several batches: enough of it that an abort after the first one comes in the middle. */
  readonly text: ModelRequest;
  /** A request that the model answers with at least one tool call. */
  readonly toolCall?: ModelRequest;
}

/** A request for an answer to `prompt`, with everything else at its plainest. */
export function modelRequest(prompt: string, overrides: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [{ role: 'user', content: prompt }], tools: [], params: {}, incremental: true, headers: {}, ...overrides };
}

/**
 * What every connection to a model must keep to (model-connector.ts).
 *
 * @param open gives a connector whose model answers the samples. It is called once for each case; closing what it opened is the caller's.
 */
export function modelConnectorContract(
  open: () => Promise<ModelConnector> | ModelConnector,
  { text, toolCall }: ModelConnectorSamples,
): readonly ContractCase[] {
  const cases: ContractCase[] = [
    {
      name: 'says what it is: a model, a context window, and text among what it takes',
      run: async () => {
        const connector = await open();
        assert.match(connector.model, /\S/, 'the model has no name');
        assert.ok(
          Number.isInteger(connector.contextWindow) && connector.contextWindow > 0,
          'the context window is no number of tokens',
        );
        assert.ok(connector.input.includes('text'), 'every model takes text');
        assert.equal(typeof connector.supportsParam('temperature'), 'boolean');
      },
    },
    {
      name: 'answers with text, counts tokens in whole numbers, and ends with exactly one `end`',
      run: async () => {
        const events = await answer(await open(), text);
        assertEnd(events);
        assert.notEqual(textOf(events), '', 'the answer to the sample has no text');
        for (const event of events) {
          if (event.type !== 'usage') continue;
          for (const [of, count] of Object.entries(event.usage)) {
            assert.ok(Number.isInteger(count) && count >= 0, `usage.${of} is ${count}`);
          }
        }
      },
    },
    {
      name: 'gives text as JSON only where that decodes to the text',
      run: async () => {
        for (const event of await answer(await open(), text)) {
          if (event.type === 'text' && event.json !== undefined) assert.equal(JSON.parse(`"${event.json}"`), event.text);
        }
      },
    },
    {
      name: 'says the same where nobody reads along',
      run: async () => {
        const connector = await open();
        const whole = await answer(connector, { ...text, incremental: false });
        assertEnd(whole);
        assert.equal(textOf(whole), textOf(await answer(connector, text)));
      },
    },
    {
      name: 'leaves the request as it is, its headers apart',
      run: async () => {
        const { headers, ...rest } = text;
        await answer(await open(), { ...deepFreeze(structuredClone(rest)), headers: { ...headers } });
      },
    },
    {
      name: 'keeps two answers at the same time apart',
      run: async () => {
        const connector = await open();
        const [one, other] = await Promise.all([answer(connector, text), answer(connector, text)]);
        assertEnd(one);
        assertEnd(other);
        assert.equal(textOf(one), textOf(other));
      },
    },
    {
      name: 'throws without an answer when it is aborted before it begins',
      run: async () => {
        const abort = new AbortController();
        abort.abort(new Error('the caller has gone'));
        const iterator = (await open()).stream(request(text), abort.signal)[Symbol.asyncIterator]();
        await soon('the throw after the abort', assert.rejects(iterator.next()));
      },
    },
    {
      name: 'throws soon when it is aborted in the middle of an answer',
      run: async () => {
        const abort = new AbortController();
        const iterator = (await open()).stream(request(text), abort.signal)[Symbol.asyncIterator]();
        const first = await soon('the first batch', iterator.next());
        assertMore(first);
        abort.abort(new Error('the caller has gone'));
        await soon(
          'the throw after the abort',
          assert.rejects(readToEnd(iterator), 'the answer went on to its end after the abort'),
        );
      },
    },
    {
      name: 'lets its reader leave in the middle of an answer',
      run: async () => {
        const iterator = (await open()).stream(request(text), new AbortController().signal)[Symbol.asyncIterator]();
        assertMore(await soon('the first batch', iterator.next()));
        assert.ok(iterator.return, 'the stream has no `return`, so a reader that leaves is not noticed');
        await soon('the end after the reader has left', iterator.return());
        assert.equal((await iterator.next()).done, true);
      },
    },
  ];
  if (toolCall) {
    cases.push({
      name: 'asks for declared tools by whole calls with ids of their own, and ends with `tool_calls`',
      run: async () => {
        const events = await answer(await open(), toolCall);
        assert.equal(assertEnd(events), 'tool_calls');
        const calls = events.filter((event) => event.type === 'tool-call');
        assert.notEqual(calls.length, 0, 'the answer to the sample has no tool call');
        assert.equal(new Set(calls.map((call) => call.id)).size, calls.length, 'two calls have the same id');
        for (const call of calls) {
          assert.match(call.id, /\S/, 'a call has no id');
          assert.ok(
            toolCall.tools.some((tool) => tool.name === call.name),
            `the tool "${call.name}" was never declared`,
          );
        }
      },
    });
  }
  return cases;
}

/** A request that a case may hand over: connectors and whoever listens may add headers, so each case brings its own. */
function request(sample: ModelRequest): ModelRequest {
  return { ...sample, headers: { ...sample.headers } };
}

async function answer(connector: ModelConnector, sample: ModelRequest): Promise<readonly ModelEvent[]> {
  const events: ModelEvent[] = [];
  const read = async () => {
    for await (const batch of connector.stream(request(sample), new AbortController().signal)) events.push(...batch);
  };
  await soon('the whole answer', read());
  return events;
}

function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.text : '')).join('');
}

/** @returns the reason of the one `end`. */
function assertEnd(events: readonly ModelEvent[]): string {
  const ends = events.filter((event) => event.type === 'end');
  assert.equal(ends.length, 1, `${ends.length} \`end\` events in ${events.map((event) => event.type).join(', ')}`);
  assert.equal(events.at(-1)?.type, 'end', 'something follows `end`');
  return ends[0]?.reason ?? assert.fail();
}

function assertMore(first: IteratorResult<readonly ModelEvent[]>): void {
  assert.ok(
    !first.done && !first.value.some((event) => event.type === 'end'),
    'the whole answer came in one batch: the sample must be answered in several',
  );
}

/** What an aborted connector had read already may still come; the end of the answer may not. */
async function readToEnd(iterator: AsyncIterator<readonly ModelEvent[]>): Promise<void> {
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    if (next.value.some((event) => event.type === 'end')) return;
  }
}
