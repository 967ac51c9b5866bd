import { defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { AgentEvents } from '../events/event.js';
import type { Turn } from './turn.js';

/**
 * A function around a turn. Discipline: nested, in file order from the outside in.
 *
 * 1. `next(turn)` runs the inner interceptors and the agent loop. To change the turn, pass a copy:
 *    the received object stays as it is. An interceptor may also skip `next` or call it again.
 * 2. The signal of the inner turn aborts when that of the turn does.
 * 3. It may pass on, change, delay or count the returned events, as long as the grammar of
 *    `AgentEvent` holds. If `next` throws, it throws too, or yields `failed`.
 *    The `tool-call-delta` events of a call show it before its `tool-call`: change or remove them
 *    together with the call. If the two differ, callers see a call that never ends.
 * 4. When its reader leaves, it leaves the inner stream: `for await` and `yield*` do that.
 * 5. A tool starts only after the batch with its `tool-call` was read: an interceptor that does not
 *    read on keeps it from starting. To decide about single calls, write a `ToolInterceptor`.
 * 6. Many turns run at the same time. State of a turn belongs inside the function.
 *
 * @public
 */
export type Interceptor = (turn: Turn, next: (turn: Turn) => AgentEvents) => AgentEvents;

/** The extension point of interceptors, in file order, the first one outermost. @public */
export const Interceptors = defineExtensionPoint<Interceptor>('agent.interceptor', {
  discipline: 'in-order',
  shape: 'function',
});
