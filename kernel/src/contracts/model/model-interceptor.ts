import { defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { Principal } from '../callers/principal.js';
import type { ModelEvent, ModelRequest } from './model-connector.js';

/**
 * A function around a request to a model connection: it watches, refuses, or answers instead.
 * Discipline: nested, in file order from the outside in.
 *
 * 1. It runs for every attempt: of steps and summaries, retries and fallbacks too. `next(call)` may
 *    be called once. What `next` returned may be returned as it is: then an event costs nothing.
 * 2. Headers may be added to `call.request.headers`. To change anything else of the request, pass a
 *    copy: `next({ ...call, request })`. Only `request` and `signal` of a copy count.
 * 3. A `TurnError` sends nothing and ends the turn; `insufficient_quota` after the first step ends
 *    it with `length` and the limit `budget`. A `ModelError` counts as the connection's. Any other
 *    error is a defect: the turn fails, or goes on without its summary.
 * 4. When the turn ends early, the iterator's `return` is called: `for await` and `yield*` pass it
 *    on.
 *
 * @public
 */
export type ModelInterceptor = (
  call: ModelCall,
  next: (call: ModelCall) => AsyncIterable<readonly ModelEvent[]>,
) => AsyncIterable<readonly ModelEvent[]>;

/** One request to a model connection, as model interceptors receive it. @public */
export interface ModelCall {
  readonly turnId: string;
  /** Name of the agent or raw model. */
  readonly agent: string;
  readonly principal: Principal;
  /** `api:<key>` if the turn belongs to a session. `request.session` hides the key. */
  readonly session: string | undefined;
  /** Number of the model call in the turn, from 1; 0 for a summary of the oldest turns. */
  readonly step: number;
  /** Number of the request for this step, from 1, over retries and fallbacks. */
  readonly attempt: number;
  /** The entry under `models`, by its key. */
  readonly connection: string;
  /** The model's name at the model server. */
  readonly model: string;
  readonly request: ModelRequest;
  /** Aborts when the turn must end. */
  readonly signal: AbortSignal;
}

/** The extension point of model interceptors, in file order, the first outermost. @public */
export const ModelInterceptors = defineExtensionPoint<ModelInterceptor>('agent.model-interceptor', {
  discipline: 'in-order',
  shape: 'function',
});
