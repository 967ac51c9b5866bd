import type { Clock, Contribution, InterceptedCall, ToolCall, ToolInterceptor, ToolOutput } from '@plugboard/kernel';
import type { ToolPart } from '@plugboard/kernel/contracts';
import { InterceptorFailed, Postponed, runIntercepted, ToolRefused } from './intercept-tool.js';
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
}

interface ToolRunOptions {
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
  /** Called just before the tool starts. @throws TurnError if it must not. */
  assertLease(): void;
  /** Called when the tool is aborted. @param ended resolves when it has ended. */
  onAborted(ended: Promise<void>): void;
}

/**
 * Runs one tool call and its interceptors within the limits of the tool's entry. A failure of the
 * tool or of an interceptor is an outcome for the model.
 * @throws the turn's reason if the turn ends.
 */
export async function runTool(
  tool: AgentTool,
  input: InterceptedCall['input'],
  call: Omit<ToolCall, 'signal'>,
  options: ToolRunOptions,
): Promise<ToolOutcome | Postponed> {
  const { clock, turnSignal, onAborted } = options;
  const { limits } = tool;
  turnSignal.throwIfAborted();
  const abort = new AbortController();
  const stopped = Promise.withResolvers<ToolOutcome>();
  let isOver = false;
  const onTurnEnd = () => {
    abort.abort(turnSignal.reason);
    stopped.reject(turnSignal.reason);
  };
  turnSignal.addEventListener('abort', onTurnEnd, { once: true });
  const timer = clock.after(limits.timeout, () => {
    const late = toolError(`The tool did not finish within ${limits.timeout / 1000} s and was stopped.`);
    abort.abort(new Error(late.content));
    stopped.resolve(late);
  });
  // Progress after the end of the call is dropped.
  const progress = (message: string, fraction?: number) => {
    if (!isOver && !abort.signal.aborted) call.progress(message, fraction);
  };
  const running = attempt(tool, input, { ...call, signal: abort.signal, progress }, options);
  try {
    return await Promise.race([running, stopped.promise]);
  } finally {
    isOver = true;
    timer.cancel();
    turnSignal.removeEventListener('abort', onTurnEnd);
    if (abort.signal.aborted) onAborted(running.then(() => {}));
  }
}

/** Never rejects: what the tool throws is an outcome, too. */
async function attempt(
  known: AgentTool,
  input: InterceptedCall['input'],
  call: ToolCall,
  { interceptors, seesImages, mayPostpone, shown, assertLease }: ToolRunOptions,
): Promise<ToolOutcome | Postponed> {
  const { tool, entry, effect, limits, log } = known;
  try {
    const start = (passed: InterceptedCall['input']) => {
      assertLease();
      return tool.run(passed, call);
    };
    if (interceptors.length === 0) return toOutcome(await start(input), limits.result, seesImages);
    const intercepted = { ...call, entry, tool: tool.name, effect, input };
    const validate = (changed: InterceptedCall['input']) => {
      const checked = known.check(JSON.stringify(changed));
      return 'fault' in checked ? checked.fault : undefined;
    };
    const textOf = (changed: InterceptedCall['input']) => completeArguments(changed, tool.inputSchema);
    const run = async (passed: InterceptedCall['input']) => {
      if (shown !== undefined && textOf(passed) !== shown) throw new Postponed(textOf(passed));
      return start(passed);
    };
    const output = await runIntercepted(interceptors, intercepted, validate, run, mayPostpone ? () => textOf(input) : undefined);
    return toOutcome(output, limits.result, seesImages);
  } catch (error) {
    if (error instanceof Postponed) return error;
    if (error instanceof ToolRefused) return toolError(truncate(error.message, limits.result));
    if (!(error instanceof InterceptorFailed)) return toolError(truncate(`The tool failed: ${messageOf(error)}`, limits.result));
    log.error(
      { err: error.cause, entry: error.entry, tool: `${entry}/${tool.name}`, agent: call.agent },
      'a tool interceptor failed',
    );
    return toolError('The tool failed: an internal error of the server; see its log for details.');
  }
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
