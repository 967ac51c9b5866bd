import { defineExtensionPoint } from '../host/plugin/extension-point.js';
import type { AgentEvents } from './event.js';
import type { Turn } from './turn.js';

/**
 * A function around a turn. Discipline: an onion, in file order from the outside in.
 *
 * `next(turn)` runs what is further in; it may be given another turn, be left out, or be called again. The events that come back are
 * what whoever is further out sees: they may be passed on, changed, held or counted, as long as their grammar (event.ts) holds.
 */
export type Interceptor = (turn: Turn, next: (turn: Turn) => AgentEvents) => AgentEvents;

export const Interceptors = defineExtensionPoint<Interceptor>('agent.interceptor', { discipline: 'in-order' });
