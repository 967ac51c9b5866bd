import type { Contribution, ModelConnector, ModelEvent, Turn } from '@plugboard/kernel';
import type { ModelCall, ModelInterceptor } from '@plugboard/kernel/contracts';

type Answer = AsyncIterable<readonly ModelEvent[]>;

/** What all requests of a step have in common for model interceptors. */
export type ModelCaller = Pick<ModelCall, 'turnId' | 'agent' | 'principal' | 'session' | 'step'>;

/** @param step from 1; 0 for a summary. */
export function modelCaller({ id, agent, principal, session }: Turn, step: number): ModelCaller {
  return { turnId: id, agent, principal, session, step };
}

/**
 * Sends one request inside its interceptors. Returns what the outermost one did: nothing is wrapped
 * around an answer that all of them return as it is.
 *
 * @throws Error that names the entry of an interceptor that returned something else than an answer.
 */
export function streamIntercepted(
  interceptors: readonly Contribution<ModelInterceptor>[],
  connector: ModelConnector,
  call: ModelCall,
): Answer {
  const from = (index: number, current: ModelCall): Answer => {
    const interceptor = interceptors[index];
    if (!interceptor) return connector.stream(current.request, current.signal);
    const { entry, value } = interceptor;
    let isUsed = false;
    const next = (passed: ModelCall): Answer => {
      if (isUsed) throw new Error(`${entry}: next(call) was called twice; a request is sent once`);
      isUsed = true;
      return from(index + 1, passedOn(entry, current, passed));
    };
    return assertAnswer(entry, value(current, next));
  };
  return from(0, call);
}

/** The call with the request and the signal that an interceptor passed on. */
function passedOn(entry: string, call: ModelCall, passed: ModelCall | undefined): ModelCall {
  if (passed === call) return call;
  const { request, signal } = passed ?? {};
  if (!request || !signal) throw new Error(`${entry}: next() needs the call; write next(call), or next({ ...call, request })`);
  return { ...call, request, signal };
}

function assertAnswer(entry: string, returned: unknown): Answer {
  if (typeof returned === 'object' && returned !== null && Symbol.asyncIterator in returned) return returned as Answer;
  // The turn fails anyway. A rejection without a handler would also end the process.
  if (returned instanceof Promise) returned.catch(() => {});
  const found = returned instanceof Promise ? 'a Promise' : `a value of type ${typeof returned}`;
  throw new Error(`${entry}: the model interceptor returned ${found}, not events; write async function*, or return next(call)`);
}
