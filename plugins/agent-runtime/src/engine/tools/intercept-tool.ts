import type { Contribution, InterceptedCall, ToolInterceptor, ToolOutput } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';

/** An interceptor refused the call. The message is for the model. */
export class ToolRefused extends Error {
  override readonly name = 'ToolRefused';
}

/** A turn that a call started, and that a person must decide about before it goes on. */
export interface WaitingChild {
  /** What the person decides about, as far as callers may see it. */
  readonly shown: {
    /** Undefined if its agent hides its tools. */
    readonly tool: { readonly entry: string; readonly name: string } | undefined;
    readonly arguments: string;
  };
  /** What the turn of the call has used of its limits, with this one. */
  readonly spent: { readonly steps: number; readonly toolCalls: number; readonly tokens: number };
  /** What the turn needs to go on, as a value of JSON. */
  readonly state: unknown;
}

/**
 * A person must decide about the call first: because of an interceptor, and the tool did not run;
 * or because of the turn that the call started.
 */
export class Postponed extends Error {
  override readonly name = 'Postponed';

  /** @param input the arguments that would run, as JSON. */
  constructor(
    readonly input: string,
    readonly child?: WaitingChild,
  ) {
    super('the call waits for a person; let this error pass');
  }
}

/** An interceptor failed, and it was not the tool's error that it passed on. */
export class InterceptorFailed extends Error {
  override readonly name = 'InterceptorFailed';

  constructor(
    readonly entry: string,
    cause: unknown,
  ) {
    super(`${entry}: the tool interceptor failed`, { cause });
  }
}

/**
 * Runs a tool inside its interceptors. Settles after the tool has, even if an interceptor did not
 * wait for it.
 *
 * @param validate returns what is wrong with arguments that an interceptor changed.
 * @param run runs the tool.
 * @param complete returns the arguments of a call that can wait: of any other, `postpone` does
 *   nothing.
 * @throws ToolRefused, Postponed, InterceptorFailed, or the error of the tool.
 */
export async function runIntercepted(
  interceptors: readonly Contribution<ToolInterceptor>[],
  call: Omit<InterceptedCall, 'postpone'>,
  validate: (input: InterceptedCall['input']) => string | undefined,
  run: (input: InterceptedCall['input']) => Promise<ToolOutput>,
  complete: (() => string) | undefined,
): Promise<ToolOutput> {
  /** The interceptor that threw an error first; undefined for errors of the tool. */
  const origins = new Map<unknown, string | undefined>();
  let tool: Promise<ToolOutput> | undefined;
  let postponed: Postponed | undefined;
  const postpone = () => {
    if (!complete) return;
    if (tool) throw new Error('postpone() was called after the tool had started; call it before next(call)');
    postponed = new Postponed(complete());
    throw postponed;
  };
  const runTool = async (input: InterceptedCall['input']) => {
    try {
      return await run(input);
    } catch (error) {
      if (error instanceof Postponed) postponed = error;
      origins.set(error, undefined);
      throw error;
    }
  };
  const from = async (index: number, current: InterceptedCall): Promise<ToolOutput> => {
    const interceptor = interceptors[index];
    if (!interceptor) {
      tool = runTool(current.input);
      return tool;
    }
    let isUsed = false;
    const next = (passed: InterceptedCall): Promise<ToolOutput> => {
      if (postponed) throw postponed;
      if (isUsed) throw new Error('next(call) was called twice; a tool call runs once');
      isUsed = true;
      const inner = from(index + 1, passedOn(current, passed, validate));
      inner.catch(() => {}); // an interceptor may answer without waiting for it
      return inner;
    };
    try {
      return assertOutput(await interceptor.value(current, next));
    } catch (error) {
      if (!origins.has(error)) origins.set(error, interceptor.entry);
      throw error;
    }
  };
  try {
    const output = await from(0, { ...call, postpone });
    if (postponed) throw postponed; // an interceptor has caught the error
    return output;
  } catch (error) {
    if (postponed) throw postponed;
    const entry = origins.get(error);
    if (entry === undefined) throw error;
    if (error instanceof TurnError) throw new ToolRefused(error.message, { cause: error });
    throw new InterceptorFailed(entry, error);
  } finally {
    await tool?.catch(() => {});
  }
}

/** The call with the arguments that an interceptor passed on. @throws Error if they are invalid. */
function passedOn(
  call: InterceptedCall,
  passed: InterceptedCall | undefined,
  validate: (input: InterceptedCall['input']) => string | undefined,
): InterceptedCall {
  const input = passed?.input;
  if (typeof input !== 'object' || input === null) throw new Error('next() needs the call; write next(call)');
  if (input === call.input) return call;
  const fault = validate(input);
  if (fault !== undefined) throw new Error(`next(call) was given other arguments, which are invalid: ${fault}`);
  return { ...call, input };
}

function assertOutput(output: unknown): ToolOutput {
  if (typeof output === 'string') return output;
  if (typeof output === 'object' && output !== null && 'content' in output && Array.isArray(output.content))
    return output as ToolOutput;
  throw new Error('it returned neither text nor content parts; return next(call), or an answer');
}
