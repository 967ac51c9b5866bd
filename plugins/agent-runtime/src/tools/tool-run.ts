import type { Clock, Tool, ToolCall, ToolOutput, ToolPart } from '@plugboard/kernel';
import { parseDuration, parseSize } from '@plugboard/kernel';

/** What every entry of `tools` may say about its calls. */
export interface ToolLimits {
  /** Milliseconds for one call. */
  readonly timeout: number;
  /** Bytes of a result that the model is given. */
  readonly result: number;
}

/** @param shared what the entry says under its section's shared options, or their defaults. */
export function toolLimits(shared: Readonly<Record<string, unknown>>): ToolLimits {
  return { timeout: parseDuration(String(shared.timeout ?? '60s')), result: parseSize(String(shared.resultLimit ?? '64kb')) };
}

export interface ToolOutcome {
  readonly content: string;
  /** As data URLs. */
  readonly images: readonly string[];
  readonly isError: boolean;
}

/** What a call is run with. */
export interface ToolRunOptions {
  readonly limits: ToolLimits;
  /** Whether the model takes images; where it does not, it is told of their type and size. */
  readonly seesImages: boolean;
  readonly clock: Clock;
  /** Aborted when the turn is to end. */
  readonly turn: AbortSignal;
  /** Called when the tool is told to end before it has. @param ended resolved when it has. */
  onAbandoned(ended: Promise<void>): void;
}

/** Runs one tool call within its limits. Whatever a tool does wrong is an outcome that the model is told; only the end of the turn itself is thrown. */
export async function runTool(
  tool: Tool,
  input: Readonly<Record<string, unknown>>,
  call: Omit<ToolCall, 'signal'>,
  { limits, seesImages, clock, turn, onAbandoned }: ToolRunOptions,
): Promise<ToolOutcome> {
  turn.throwIfAborted();
  const abort = new AbortController();
  const outcome = Promise.withResolvers<ToolOutcome>();
  const ended = Promise.withResolvers<void>();
  let isOver = false;
  const abandon = (reason: unknown) => {
    if (isOver) return;
    isOver = true;
    abort.abort(reason);
    onAbandoned(ended.promise);
  };
  const endWithTurn = () => {
    abandon(turn.reason);
    outcome.reject(turn.reason);
  };
  turn.addEventListener('abort', endWithTurn, { once: true });
  const timer = clock.after(limits.timeout, () => {
    const late = toolError(`The tool did not finish within ${limits.timeout / 1000} s and was stopped.`);
    abandon(new Error(late.content));
    outcome.resolve(late);
  });
  // What a tool tells after its end, or after it was given up, is heard by nobody.
  const progress = (message: string, fraction?: number) => {
    if (!isOver) call.progress(message, fraction);
  };
  // A tool that throws at once and one that rejects are the same.
  const running = (async () => tool.run(input, { ...call, signal: abort.signal, progress }))();
  running
    .then((output) => outcome.resolve(toOutcome(output, limits.result, seesImages)))
    .catch((error) => outcome.resolve(toolError(`The tool failed: ${messageOf(error)}`)))
    .finally(ended.resolve);
  try {
    return await outcome.promise;
  } finally {
    isOver = true;
    timer.cancel();
    turn.removeEventListener('abort', endWithTurn);
  }
}

export function toolError(content: string): ToolOutcome {
  return { content, images: [], isError: true };
}

function toOutcome(output: ToolOutput, limit: number, seesImages: boolean): ToolOutcome {
  if (typeof output === 'string') return { content: truncate(output, limit), images: [], isError: false };
  if (typeof output !== 'object' || output === null || !Array.isArray(output.content)) {
    return toolError('The tool returned neither text nor parts.');
  }
  const parts: readonly ToolPart[] = output.content;
  const lines = parts.flatMap((part) => describePart(part, seesImages));
  const images = seesImages
    ? parts.flatMap((part) => (part.type === 'image' ? [`data:${part.mimeType};base64,${part.data}`] : []))
    : [];
  return { content: truncate(lines.join('\n'), limit), images, isError: output.isError === true };
}

function describePart(part: ToolPart, seesImages: boolean): string[] {
  switch (part.type) {
    case 'text':
      return [part.text];
    case 'image':
      return seesImages
        ? []
        : [`[${part.mimeType}, ${Math.floor((part.data.length * 3) / 4)} bytes: this model takes no images]`];
    case 'other':
      return [`[${part.kind}, ${part.bytes} bytes: this model takes no such content]`];
  }
}

/** The text in at most `limit` bytes of UTF-8, the note that it was cut included. */
function truncate(text: string, limit: number): string {
  // No character takes more than three bytes per UTF-16 unit: most results need no counting.
  if (text.length * 3 <= limit) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes <= limit) return text;
  const note = `\n… [truncated: ${bytes} bytes in all]`;
  const room = Math.max(0, limit - Buffer.byteLength(note));
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(room));
  return text.slice(0, read) + note;
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return typeof error === 'string' && error !== '' ? error : 'it gave no reason';
}
