import { defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { Tool, ToolCall, ToolOutput } from './tool-source.js';

/**
 * A function around a tool call: it lets the call pass, changes it, answers instead of the tool, or
 * refuses the call. Discipline: nested, in file order from the outside in.
 *
 * 1. It runs for every call of an agent's own tools, of all entries. Calls of one step run at the
 *    same time, each with its own `call`. Arguments have been validated.
 * 2. `next(call)` runs the inner interceptors and the tool, and returns what the tool returned. To
 *    change the arguments, pass a copy: `next({ ...call, input })`. Nothing else of a call can be
 *    changed. `next` may be called once; a second call throws.
 * 3. An interceptor that does not call `next` answers instead of the tool: the model receives what
 *    it returns.
 * 4. A `TurnError` refuses the call: the model receives its message, and the turn continues. An
 *    error of the tool comes through `next` and may be passed on. Any other error is a defect of
 *    the interceptor: it is logged with the entry, and the model receives an error.
 * 5. `call.postpone()` asks a person for approval, where the configuration does not. It throws, and
 *    the interceptor lets the error pass. After the approval the interceptor runs again, and
 *    `postpone` returns.
 * 6. The time limit and the result limit of the tool's entry include its interceptors.
 *
 * @public
 */
export type ToolInterceptor = (
  call: InterceptedCall,
  next: (call: InterceptedCall) => Promise<ToolOutput>,
) => Promise<ToolOutput> | ToolOutput;

/** A tool call, as tool interceptors receive it. @public */
export interface InterceptedCall extends ToolCall {
  /** The entry that offers the tool, by its key under `tools`. */
  readonly entry: string;
  /** The tool's own name. */
  readonly tool: string;
  /** The effect of a second call, as the tool declares it. */
  readonly effect: NonNullable<Tool['effect']>;
  /** The arguments, which match the tool's `inputSchema`. */
  readonly input: Readonly<Record<string, unknown>>;
  /**
   * Asks a person for approval before the call runs. Throws unless the call was approved. Without
   * a session no call can wait: it is refused.
   */
  postpone(): void;
}

/** The extension point of tool interceptors, in file order, the first outermost. @public */
export const ToolInterceptors = defineExtensionPoint<ToolInterceptor>('agent.tool-interceptor', {
  discipline: 'in-order',
  shape: 'function',
});
