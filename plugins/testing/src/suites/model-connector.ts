import assert from 'node:assert/strict';
import { type ModelConnector, ModelError, type ModelEvent, type ModelRequest } from '@plugboard/kernel';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { deepFreeze } from '../contract/deep-freeze.js';
import { waitFor } from '../contract/wait.js';

/** What the suite of model connectors needs. @experimental */
export interface ModelConnectorContractOptions {
  /** Returns a connector whose model answers the samples, once per case. The caller closes it. */
  readonly open: () => Promise<ModelConnector> | ModelConnector;
  /** A request answered in several batches: an abort after the first one is early. */
  readonly text: ModelRequest;
  /** A request that is answered with at least one tool call. */
  readonly toolCall?: ModelRequest;
  /**
   * Returns a connector whose model server refuses every request, for example with 503, and how
   * many it has received. Adds the cases about failures.
   */
  readonly failing?: () => { readonly connector: ModelConnector; requests(): number };
  /**
   * Returns a connector whose model server answers without an end, as fast as it is read. `written`
   * grows with what the server could write, and `isOpen` says whether its socket is open. Adds the
   * case about readers that stop.
   */
  readonly endless?: () => { readonly connector: ModelConnector; written(): number; isOpen(): boolean };
  /** Milliseconds that one answer may take. By default 10,000. */
  readonly timeLimit?: number;
}

/** Milliseconds in which a server that is not read writes nothing more. */
const STILL = 50;

/** A minimal request: one user message, no tools, no parameters. @experimental */
export function modelRequest(prompt: string, overrides: Partial<ModelRequest> = {}): ModelRequest {
  return {
    messages: [{ role: 'user', content: prompt }],
    tools: [],
    params: {},
    incremental: true,
    requestId: 'req_1',
    session: undefined,
    user: undefined,
    headers: {},
    ...overrides,
  };
}

/**
 * Declares the tests of a connection to a model (`ModelConnector`).
 *
 * ```ts
 * modelConnectorContract(t.test, { open: () => new EchoModel(), text: modelRequest('Hello there') });
 * ```
 *
 * @experimental
 */
export function modelConnectorContract(test: DeclareTest, options: ModelConnectorContractOptions): void {
  const { open, text, toolCall, failing, endless, timeLimit } = options;
  const contract = new Contract('A model connector', test);
  const answer = async (connector: ModelConnector, sample: ModelRequest): Promise<readonly ModelEvent[]> => {
    const events: ModelEvent[] = [];
    const read = async () => {
      for await (const batch of connector.stream(lend(sample), new AbortController().signal)) events.push(...batch);
    };
    await waitFor('the whole answer', read(), timeLimit);
    return events;
  };
  /** Whether something becomes true within the limit. */
  const soon = async (check: () => boolean) => {
    for (let left = timeLimit ?? 10_000; left > 0; left -= STILL) {
      if (check()) return true;
      await new Promise((resolve) => setTimeout(resolve, STILL));
    }
    return check();
  };
  const begin = async (signal: AbortSignal) => {
    const iterator = (await open()).stream(lend(text), signal)[Symbol.asyncIterator]();
    const first = await waitFor('the first batch', iterator.next(), timeLimit);
    const whole = first.done || first.value.some((event) => event.type === 'end');
    assert.ok(!whole, 'the whole answer came in one batch; the sample must be answered in several');
    return iterator;
  };

  contract.add('names its model', 'ModelConnector.model', async () => {
    assert.match((await open()).model, /\S/, '`model` is empty');
  });
  contract.add('states its context window in tokens', 'ModelConnector.contextWindow', async () => {
    const { contextWindow } = await open();
    assert.ok(Number.isInteger(contextWindow) && contextWindow > 0, `\`contextWindow\` is ${contextWindow}`);
  });
  contract.add('accepts text', 'ModelConnector.input', async () => {
    const { input } = await open();
    assert.ok(input.includes('text'), `\`input\` is ${JSON.stringify(input)}`);
  });
  contract.add('says whether it supports a parameter', 'ModelConnector.supportsParam', async () => {
    const supported: unknown = (await open()).supportsParam('temperature');
    assert.equal(typeof supported, 'boolean', `\`supportsParam('temperature')\` returns ${supported}`);
  });
  contract.add('ends an answer with exactly one `end`', 'ModelConnector 3', async () => {
    assertEnd(await answer(await open(), text));
  });
  contract.add('answers with text', 'ModelText', async () => {
    assert.notEqual(textOf(await answer(await open(), text)), '', 'the answer to the sample has no text');
  });
  contract.add('counts tokens in whole numbers', 'ModelUsage', async () => {
    for (const event of await answer(await open(), text)) {
      if (event.type !== 'usage') continue;
      for (const [name, count] of Object.entries(event.usage)) {
        assert.ok(Number.isInteger(count) && count >= 0, `usage.${name} is ${count}`);
      }
    }
  });
  contract.add('yields `json` only if it decodes to `text`', 'ModelText.json', async () => {
    for (const event of await answer(await open(), text)) {
      if (event.type !== 'text' || event.json === undefined) continue;
      assert.equal(JSON.parse(`"${event.json}"`), event.text, `"${event.json}" does not decode to "${event.text}"`);
    }
  });
  contract.add('gives the same text if the answer is not read incrementally', 'ModelRequest.incremental', async () => {
    const connector = await open();
    const whole = await answer(connector, { ...text, incremental: false });
    assertEnd(whole);
    assert.equal(textOf(whole), textOf(await answer(connector, text)), 'the two texts differ');
  });
  contract.add('changes nothing of a request except its headers', 'ModelConnector 7', async () => {
    const { headers, ...rest } = text;
    await answer(await open(), { ...deepFreeze(structuredClone(rest)), headers: { ...headers } });
  });
  contract.add('keeps concurrent answers apart', 'ModelConnector 8', async () => {
    const connector = await open();
    const [one, other] = await Promise.all([answer(connector, text), answer(connector, text)]);
    assertEnd(one);
    assertEnd(other);
    assert.equal(textOf(one), textOf(other), 'the two texts differ');
  });
  contract.add('throws if the signal is aborted before the answer', 'ModelConnector 5', async () => {
    const abort = new AbortController();
    abort.abort(new Error('the caller disconnected'));
    const iterator = (await open()).stream(lend(text), abort.signal)[Symbol.asyncIterator]();
    const thrown = assert.rejects(iterator.next(), 'it answered although its signal was aborted');
    await waitFor('the error after the abort', thrown, timeLimit);
  });
  contract.add('throws soon if the signal is aborted during the answer', 'ModelConnector 5', async () => {
    const abort = new AbortController();
    const iterator = await begin(abort.signal);
    abort.abort(new Error('the caller disconnected'));
    const thrown = assert.rejects(readToEnd(iterator), 'the answer continued to its end after the abort');
    await waitFor('the error after the abort', thrown, timeLimit);
  });
  contract.add('ends when the reader leaves during the answer', 'ModelConnector 6', async () => {
    const iterator = await begin(new AbortController().signal);
    assert.ok(iterator.return, 'the iterator has no `return`, so it does not notice that the reader leaves');
    await waitFor('the end after the reader left', iterator.return(), timeLimit);
    assert.equal((await iterator.next()).done, true, 'more batches followed `return`');
  });

  if (failing) {
    contract.add('throws a `ModelError` if its server refuses, and asks it once', 'ModelConnector 4', async () => {
      const { connector, requests } = failing();
      const [failure] = await Promise.allSettled([answer(connector, text)]);
      assert.ok(failure.status === 'rejected', 'it answered although its server refused');
      assert.ok(failure.reason instanceof ModelError, `it threw ${failure.reason}, which is not a ModelError`);
      assert.equal(requests(), 1, `it sent ${requests()} requests; the runtime retries, a connector never does`);
    });
  }

  if (endless) {
    contract.add('stops reading when its reader does, and closes the socket when it leaves', 'ModelConnector 6', async () => {
      const { connector, written, isOpen } = endless();
      const iterator = connector.stream(lend(text), new AbortController().signal)[Symbol.asyncIterator]();
      await waitFor('the first batch', iterator.next(), timeLimit);
      let before = -1;
      const hasStopped = () => {
        const last = before;
        before = written();
        return last === before;
      };
      assert.ok(await soon(hasStopped), 'it reads on although nobody pulls');
      await waitFor('the end after the reader left', Promise.resolve(iterator.return?.()), timeLimit);
      assert.ok(await soon(() => !isOpen()), 'the socket is open after the reader left');
    });
  }

  if (toolCall) {
    contract.add('calls declared tools with unique ids and ends with `tool_calls`', 'ModelToolCall', async () => {
      const events = await answer(await open(), toolCall);
      assert.equal(assertEnd(events), 'tool_calls', 'the reason of `end` is another one');
      const calls = events.filter((event) => event.type === 'tool-call');
      assert.notEqual(calls.length, 0, 'the answer to the sample has no tool call');
      assert.equal(new Set(calls.map((call) => call.id)).size, calls.length, 'two calls have the same id');
      for (const { id, name } of calls) {
        assert.match(id, /\S/, 'a call has no id');
        assert.ok(
          toolCall.tools.some((tool) => tool.name === name),
          `the tool "${name}" is not declared in the request`,
        );
      }
    });
    contract.add('streams calls of streamed tools only, as they then are', 'ModelToolCallDelta', async () => {
      const none = await answer(await open(), toolCall);
      assert.ok(
        !none.some(({ type }) => type === 'tool-call-delta'),
        'no tool is streamed, but there are `tool-call-delta` events',
      );
      const streamedTools = toolCall.tools.map(({ name }) => name);
      assertPieces(await answer(await open(), { ...toolCall, streamedTools }));
    });
  }
}

/** Asserts that every call begins with its pieces, and that calls are streamed in their order. */
function assertPieces(events: readonly ModelEvent[]): void {
  const begun = new Map<string, string>();
  for (const event of events) {
    if (event.type !== 'tool-call-delta') continue;
    begun.set(event.id, (begun.get(event.id) ?? '') + event.arguments);
  }
  const calls = events.filter((event) => event.type === 'tool-call');
  const first = calls.slice(0, begun.size).map(({ id }) => id);
  assert.deepEqual([...begun.keys()], first, 'the calls with pieces are not the first calls of the answer, in their order');
  for (const { id, arguments: whole } of calls) {
    const pieces = begun.get(id) ?? '';
    assert.ok(whole.startsWith(pieces), `the arguments ${whole} do not begin with the pieces ${pieces}`);
  }
}

/** A copy with its own headers, which connectors and their observers may change. */
function lend(sample: ModelRequest): ModelRequest {
  return { ...sample, headers: { ...sample.headers } };
}

function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.text : '')).join('');
}

/** @returns the reason of the `end`. */
function assertEnd(events: readonly ModelEvent[]): string {
  const ends = events.filter((event) => event.type === 'end');
  const types = events.map((event) => event.type).join(', ');
  assert.equal(ends.length, 1, `there are ${ends.length} \`end\` events in: ${types}`);
  assert.equal(events.at(-1)?.type, 'end', `\`end\` is not the last event of: ${types}`);
  return ends[0]?.reason ?? assert.fail();
}

/** Reads until `end`. Batches that were read before the abort may still arrive. */
async function readToEnd(iterator: AsyncIterator<readonly ModelEvent[]>): Promise<void> {
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    if (next.value.some((event) => event.type === 'end')) return;
  }
}
