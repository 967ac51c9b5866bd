import { defineExtensionPoint } from '../host/plugin/extension-point.js';
import type { AgentEvents } from './event.js';
import type { Turn } from './turn.js';

/**
 * A function around a turn. Discipline: nested, in file order from the outside in.
 *
 * `next(turn)` runs the inner interceptors and the agent loop. An interceptor may pass a changed
 * turn, skip `next`, or call it again. It may pass on, change, delay or count the returned events,
 * as long as the grammar in event.ts holds.
 *
 * @public
 */
export type Interceptor = (turn: Turn, next: (turn: Turn) => AgentEvents) => AgentEvents;

/**
 * The extension point of interceptors: `agent.interceptor`, in file order, the first one outermost.
 *
 * @public
 */
export const Interceptors = defineExtensionPoint<Interceptor>('agent.interceptor', { discipline: 'in-order' });
