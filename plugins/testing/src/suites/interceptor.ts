import assert from 'node:assert/strict';
import type { AgentEvent, Interceptor, Turn } from '@plugboard/kernel';
import { type AgentEvents, NO_USAGE, OPEN } from '@plugboard/kernel/contracts';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { deepFreeze } from '../contract/deep-freeze.js';
import { waitFor } from '../contract/wait.js';
import { assertGrammar, readAll } from './event-grammar.js';

/** The options of `interceptorContract`. @experimental */
export interface InterceptorContractOptions {
  /** Returns an interceptor that is ready for use. Called once per case; the caller closes it. */
  readonly open: () => Promise<Interceptor> | Interceptor;
  /** A turn that the interceptor lets through. By default `testTurn()`. */
  readonly turn?: Turn;
  /** Milliseconds that one turn may take. By default 10,000. */
  readonly timeLimit?: number;
}

/** A turn of the agent `assistant` on an open server, with one user message. @experimental */
export function testTurn(overrides: Partial<Turn> = {}): Turn {
  return { ...DEFAULT_TURN, signal: new AbortController().signal, ...overrides };
}

/**
 * Declares the tests of a function around a turn (`Interceptor`).
 *
 * ```ts
 * interceptorContract(t.test, { open: () => testContext(plugin).contributed(Interceptors) });
 * ```
 *
 * @experimental
 */
export function interceptorContract(test: DeclareTest, options: InterceptorContractOptions): void {
  const { turn = testTurn(), timeLimit } = options;
  const contract = new Contract('An interceptor', test);
  const open = async (): Promise<Interceptor> => {
    const interceptor = await options.open();
    return (given, next) => assertEvents(interceptor(given, next));
  };
  const read = (events: AgentEvents) => waitFor('the end of the turn', readAll(events), timeLimit);

  contract.add('keeps the grammar of the events of a successful turn', 'AgentEvent', async () => {
    assertGrammar(await read((await open())(turn, (inner) => answer(inner))));
  });
  contract.add('keeps the grammar of the events of a failed turn', 'AgentEvent', async () => {
    const failed: AgentEvent = { type: 'failed', failure: { code: 'model_failed', message: 'no answer', toolsRan: false } };
    assertGrammar(await read((await open())(turn, (inner) => batches([started(inner)], [failed]))));
  });
  contract.add('does not hide an error of the inner turn as a success', 'Interceptor 3', async () => {
    async function* broken(inner: Turn): AgentEvents {
      yield [started(inner)];
      throw new Error('the inner turn threw');
    }
    const events = await read((await open())(turn, broken)).catch(() => undefined);
    assert.ok(events === undefined || assertGrammar(events).type === 'failed', 'the turn ends with `finished`');
  });
  contract.add('does not change the turn that it receives', 'Interceptor 1', async () => {
    const { signal, ...data } = turn;
    const frozen = { ...deepFreeze(structuredClone(data)), signal };
    assertGrammar(await read((await open())(Object.freeze(frozen), (inner) => answer(inner))));
  });
  contract.add('passes on a signal that aborts with the turn', 'Interceptor 2', async () => {
    const abort = new AbortController();
    let inner: Turn | undefined;
    const next = (passed: Turn) => {
      inner = passed;
      return answer(passed);
    };
    const iterator = (await open())({ ...turn, signal: abort.signal }, next)[Symbol.asyncIterator]();
    await waitFor('the first batch', iterator.next(), timeLimit);
    abort.abort(new Error('the caller disconnected'));
    assert.ok(inner === undefined || inner.signal.aborted, 'the signal of the inner turn is not aborted');
    await waitFor('the end after the reader left', Promise.resolve(iterator.return?.()), timeLimit);
  });
  contract.add('ends the inner turn when its reader leaves', 'Interceptor 4', async () => {
    const ended = Promise.withResolvers<void>();
    let began = false;
    async function* watched(inner: Turn): AgentEvents {
      began = true;
      try {
        yield* answer(inner);
      } finally {
        ended.resolve();
      }
    }
    const iterator = (await open())(turn, watched)[Symbol.asyncIterator]();
    await waitFor('the first batch', iterator.next(), timeLimit);
    assert.ok(iterator.return, 'the iterator has no `return`, so it does not notice that the reader leaves');
    await waitFor('the end after the reader left', iterator.return(), timeLimit);
    if (began) await waitFor('the end of the inner turn after the reader left', ended.promise, timeLimit);
  });
  contract.add('keeps concurrent turns apart', 'Interceptor 6', async () => {
    const interceptor = await open();
    const run = async (id: string) => {
      const events = await read(interceptor({ ...turn, id }, (inner) => answer(inner)));
      assertGrammar(events);
      const [first] = events;
      assert.ok(first?.type !== 'started' || first.turnId === id, `the turn "${id}" has the events of another turn`);
    };
    await Promise.all([run('turn_1'), run('turn_2'), run('turn_3')]);
  });
}

/** A function that was meant to be `async function*` often returns a promise instead. */
function assertEvents(returned: unknown): AgentEvents {
  const isPromise = returned instanceof Promise;
  if (isPromise) returned.catch(() => {}); // the mistake is reported, not the error
  const found = isPromise ? 'a Promise' : `a value of type ${typeof returned}`;
  assert.ok(
    typeof returned === 'object' && returned !== null && Symbol.asyncIterator in returned,
    `the interceptor returned ${found}, not events; write async function*, or return next(turn)`,
  );
  return returned as AgentEvents;
}

const DEFAULT_TURN: Omit<Turn, 'signal'> = {
  id: 'turn_1',
  agent: 'assistant',
  principal: OPEN,
  session: undefined,
  user: undefined,
  transport: undefined,
  system: 'You are a helpful assistant.',
  messages: [{ role: 'user', content: 'Hello' }],
  tools: [],
  clientTools: [],
  params: {},
  incremental: true,
  requestId: 'req_1',
  metadata: {},
};

function started({ id, agent }: Turn): AgentEvent {
  return { type: 'started', turnId: id, agent };
}

function answer(turn: Turn): AgentEvents {
  const usage = { ...NO_USAGE, promptTokens: 3, completionTokens: 2 };
  return batches(
    [started(turn), { type: 'step', step: 1, connection: 'fast' }],
    [{ type: 'text', text: 'Hello' }],
    [{ type: 'text', text: ' there.' }],
    [
      { type: 'usage', usage },
      { type: 'finished', reason: 'stop', usage },
    ],
  );
}

async function* batches(...all: readonly (readonly AgentEvent[])[]): AgentEvents & AsyncGenerator<readonly AgentEvent[]> {
  for (const batch of all) {
    await Promise.resolve();
    yield batch;
  }
}
