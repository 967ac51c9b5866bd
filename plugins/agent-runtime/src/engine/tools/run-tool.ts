import type {
  AgentEvent,
  Clock,
  Contribution,
  InterceptedCall,
  Tool,
  ToolCall,
  ToolInterceptor,
  ToolOutput,
  ToolSource,
} from '@plugboard/kernel';
import type { ToolPart } from '@plugboard/kernel/contracts';
import { InterceptorFailed, Postponed, runIntercepted, ToolRefused, type WaitingChild } from './intercept-tool.js';
import { completeArguments } from './tool-arguments.js';
import type { AgentTool } from './toolbox.js';

/** Characters of the images of one result, as data URLs: they are sent to the model and stored. */
const MAX_IMAGES = 5 * 2 ** 20;
/** Characters that an image counts besides its own, which bounds the number of images. */
const IMAGE_COST = 1_024;

export interface ToolOutcome {
  readonly content: string;
  /** As data URLs. */
  readonly images: readonly string[];
  readonly isError: boolean;
  /** Whether the call took effect is unknown, and `content` says so. */
  readonly effect?: 'unknown';
}

/** What is known of a call while it runs. */
interface Attempt {
  /** What became of the attempt before, if its answer was lost. */
  readonly lost: ToolOutcome | undefined;
  /** Whether the tool has been called. */
  hasBegun: boolean;
  /** Whether the tool says that its answer was lost. */
  isLost: boolean;
}

/**
 * Takes events of a turn that a call started. If it returns a promise, the sender must wait for it.
 */
export type NestEvents = (event: Extract<AgentEvent, { type: 'nested' }>) => Promise<void> | undefined;

/** A running call of a tool that asks an agent. */
export interface AskingCall {
  /** As the tool receives it. */
  readonly call: ToolCall;
  readonly entry: string;
  readonly asks: NonNullable<ToolSource['asks']>;
  /** Takes the events of the turn that the call starts. */
  readonly nest: NestEvents;
  /** Of a call that waited for a person: how its turn goes on. */
  readonly resumed: unknown;
}

/** What became of the turn that a call started. */
export interface AskedTurn {
  readonly waiting: WaitingChild | undefined;
  /** The call has ended. */
  end(): void;
}

interface ToolRunOptions {
  /** Called before the tool is run for the first time. */
  readonly onBegin?: (() => Promise<void>) | undefined;
  /** Whether interceptors can let the call wait for a person. */
  readonly mayPostpone: boolean;
  /** The only arguments that may run, as JSON. */
  readonly shown: string | undefined;
  readonly interceptors: readonly Contribution<ToolInterceptor>[];
  /** Whether the model accepts images. If not, it receives their type and size as text. */
  readonly seesImages: boolean;
  readonly clock: Clock;
  /** Aborts when the turn must end. */
  readonly turnSignal: AbortSignal;
  /** Called with the call of a tool that asks an agent. */
  onAsking(asking: Pick<AskingCall, 'call' | 'entry' | 'asks'>): AskedTurn;
  /** Called just before the tool starts. @throws TurnError if it must not. */
  assertLease(): void;
  /** Called when the tool is aborted. @param ended resolves when it has ended. */
  onAborted(ended: Promise<void>): void;
}

/**
 * Runs one tool call and its interceptors within the limits of the tool's entry. A failure of the
 * tool or of an interceptor is an outcome for the model. A call whose answer is lost is settled
 * once, if that can do no harm: with the same key, and through its interceptors.
 *
 * @param lost what is known of the attempt before, if its answer was lost.
 * @throws the turn's reason if the turn ends.
 */
export async function runTool(
  tool: AgentTool,
  input: InterceptedCall['input'],
  call: Omit<ToolCall, 'signal'>,
  options: ToolRunOptions,
  lost?: ToolOutcome,
): Promise<ToolOutcome | Postponed> {
  const { clock, turnSignal, onAborted } = options;
  const { limits } = tool;
  turnSignal.throwIfAborted();
  if (lost && !canSettle(tool)) return lost;
  const current: Attempt = { lost, hasBegun: false, isLost: false };
  const abort = new AbortController();
  /** Settled by what comes first: the tool, its time limit, or the end of the turn. */
  const first = Promise.withResolvers<ToolOutcome | Postponed>();
  let isOver = false;
  let outcome: ToolOutcome | Postponed;
  const onTurnEnd = () => {
    abort.abort(turnSignal.reason);
    first.reject(turnSignal.reason);
  };
  turnSignal.addEventListener('abort', onTurnEnd, { once: true });
  const timer = clock.after(limits.timeout, () => {
    const late = `The tool did not finish within ${limits.timeout / 1000} s and was stopped.`;
    abort.abort(new Error(late));
    const isUnknown = current.hasBegun && tool.effect !== 'read';
    first.resolve(isUnknown ? lostAnswer(tool, late) : (lost ?? toolError(late)));
  });
  // Progress after the end of the call is dropped.
  const progress = (message: string, fraction?: number) => {
    if (!isOver && !abort.signal.aborted) call.progress(message, fraction);
  };
  const own = { ...call, signal: abort.signal, progress };
  const { entry, asks } = tool;
  const asked = asks && options.onAsking({ call: own, entry, asks });
  const running = attempt(tool, input, own, options, current);
  const ended = running.then(first.resolve);
  try {
    outcome = await first.promise;
  } finally {
    isOver = true;
    asked?.end();
    timer.cancel();
    turnSignal.removeEventListener('abort', onTurnEnd);
    if (abort.signal.aborted) onAborted(ended);
  }
  if (asked?.waiting) return new Postponed(completeArguments(input, tool.tool.inputSchema), asked.waiting);
  if (outcome instanceof Postponed || outcome.effect === undefined) return outcome;
  if (!lost && canSettle(tool)) return runTool(tool, input, call, options, outcome);
  if (tool.effect !== 'read') return outcome;
  const { effect: _, ...known } = outcome;
  return known;
}

/** Whether the outcome of a call whose answer is lost can be found out. */
function canSettle({ effect, tool }: AgentTool): boolean {
  return effect !== 'write' || tool.keyed === true || tool.verify !== undefined;
}

/** Never rejects: what the tool throws is an outcome, too. */
async function attempt(
  known: AgentTool,
  input: InterceptedCall['input'],
  call: ToolCall,
  options: ToolRunOptions,
  current: Attempt,
): Promise<ToolOutcome | Postponed> {
  const { tool, entry, limits, log } = known;
  const { interceptors, onBegin, seesImages } = options;
  const { lost } = current;
  try {
    let output: ToolOutput;
    if (interceptors.length === 0 && !onBegin && !lost) {
      options.assertLease();
      current.hasBegun = true;
      output = await tool.run(input, call);
    } else output = await throughInterceptors(known, input, call, options, current);
    const outcome = toOutcome(output, limits.result, seesImages);
    if (current.isLost) return { ...outcome, effect: 'unknown' }; // an interceptor has caught the error
    return lost && !current.hasBegun ? lost : outcome;
  } catch (error) {
    if (error instanceof Postponed) return error;
    if (lost && !current.hasBegun) return lost;
    if (error instanceof ToolRefused) return toolError(truncate(error.message, limits.result));
    if (error instanceof InterceptorFailed) {
      log.error(
        { err: error.cause, entry: error.entry, tool: `${entry}/${tool.name}`, agent: call.agent },
        'a tool interceptor failed',
      );
      const failure = 'The tool failed: an internal error of the server; see its log for details.';
      return current.isLost ? lostAnswer(known, failure) : toolError(failure);
    }
    const failure = truncate(`The tool failed: ${messageOf(error)}`, limits.result);
    // An error of the second attempt says nothing about the first one.
    return lost || isAnswerLost(error) ? lostAnswer(known, failure) : toolError(failure);
  }
}

/** @throws Postponed, ToolRefused, InterceptorFailed, or the error of the tool. */
function throughInterceptors(
  known: AgentTool,
  input: InterceptedCall['input'],
  call: ToolCall,
  options: ToolRunOptions,
  current: Attempt,
): Promise<ToolOutput> {
  const { tool, entry, effect } = known;
  const { interceptors, mayPostpone, shown } = options;
  if (interceptors.length === 0) return callTool(tool, input, call, options, current);
  const intercepted = { ...call, entry, tool: tool.name, effect, input };
  const validate = (changed: InterceptedCall['input']) => {
    const checked = known.check(JSON.stringify(changed));
    return 'fault' in checked ? checked.fault : undefined;
  };
  const textOf = (changed: InterceptedCall['input']) => completeArguments(changed, tool.inputSchema);
  const run = async (passed: InterceptedCall['input']) => {
    if (shown !== undefined && textOf(passed) !== shown) throw new Postponed(textOf(passed));
    return callTool(tool, passed, call, options, current);
  };
  const complete = mayPostpone && !current.lost ? () => textOf(input) : undefined;
  return runIntercepted(interceptors, intercepted, validate, run, complete);
}

/** Runs the tool, or finds out what became of the attempt before. */
async function callTool(
  tool: Tool,
  input: InterceptedCall['input'],
  call: ToolCall,
  { onBegin, assertLease }: ToolRunOptions,
  current: Attempt,
): Promise<ToolOutput> {
  if (onBegin && !current.lost) {
    await onBegin();
    call.signal.throwIfAborted(); // its time may be over
  }
  assertLease();
  current.hasBegun = true;
  try {
    const settled = current.lost && tool.verify ? await tool.verify(`${call.turnId}/${call.index}`, call) : undefined;
    return settled ?? (await tool.run(input, call));
  } catch (error) {
    current.isLost = isAnswerLost(error);
    throw error;
  }
}

/** Whether an error of a tool says that its answer was lost. */
function isAnswerLost(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'effect' in error && error.effect === 'unknown';
}

/** The outcome of a call whose answer was lost. Says what that means, unless the reason does. */
function lostAnswer({ effect }: AgentTool, reason: string): ToolOutcome {
  const isSaid = effect === 'read' || /whether (?:the call|it) took effect is unknown/i.test(reason);
  const content = isSaid ? reason : `${reason.replace(/[.]?$/, '.')} Whether the call took effect is unknown.`;
  return { ...toolError(content), effect: 'unknown' };
}

export function toolError(content: string): ToolOutcome {
  return { content, images: [], isError: true };
}

function toOutcome(output: ToolOutput, limit: number, seesImages: boolean): ToolOutcome {
  if (typeof output === 'string') return { content: truncate(output, limit), images: [], isError: false };
  if (typeof output !== 'object' || output === null || !Array.isArray(output.content)) {
    return toolError('The tool returned neither text nor content parts.');
  }
  const parts: readonly ToolPart[] = output.content;
  const images: string[] = [];
  let size = 0;
  const lines = parts.flatMap((part) => {
    if (part.type !== 'image' || !seesImages) return describePart(part);
    const image = `data:${part.mimeType};base64,${part.data}`;
    size += image.length + IMAGE_COST;
    if (size > MAX_IMAGES) return describeImage(part, `left out, a result may have ${MAX_IMAGES / 2 ** 20} MiB of images`);
    images.push(image);
    return [];
  });
  return { content: truncate(lines.join('\n'), limit), images, isError: output.isError === true };
}

function describePart(part: ToolPart): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'image':
      return describeImage(part, 'this model does not accept images');
    case 'other':
      return `[${part.kind}, ${part.bytes} bytes: this model does not accept such content]`;
  }
}

function describeImage({ mimeType, data }: Extract<ToolPart, { type: 'image' }>, why: string): string {
  return `[${mimeType}, ${Math.floor((data.length * 3) / 4)} bytes: ${why}]`;
}

/**
 * Truncates the text to `limit` bytes of UTF-8, including the note. An unpaired surrogate becomes
 * U+FFFD.
 */
function truncate(output: string, limit: number): string {
  const text = output.toWellFormed();
  // At most three bytes per UTF-16 unit, so most results need no counting.
  if (text.length * 3 <= limit) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes <= limit) return text;
  const note = `\n… [truncated: ${bytes} bytes in total]`;
  // A copy: a slice would keep the whole text in memory.
  const kept = Buffer.alloc(Math.max(0, limit - Buffer.byteLength(note)));
  const { written } = new TextEncoder().encodeInto(text, kept);
  return kept.toString('utf8', 0, written) + note;
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return typeof error === 'string' && error !== '' ? error : 'no reason given';
}
