/** A chunk of a streamed completion, as far as tests look into it. */
interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: { readonly role?: string; readonly content?: string; readonly refusal?: null; readonly tool_calls?: unknown };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Readonly<Record<string, unknown>> | null;
}

/** A whole event stream, taken apart. */
export interface Streamed {
  readonly chunks: readonly Chunk[];
  /** The values of `error` in frames that are not chunks. */
  readonly errors: readonly unknown[];
  readonly comments: readonly string[];
  /** Whether it ended with `[DONE]`. */
  readonly done: boolean;
  /** The deltas' text, joined. */
  readonly text: string;
}

/**
 * Takes an event stream apart, by the few forms that this server may send: a comment, a `data:`
 * line of JSON, `[DONE]` at the end, each followed by a blank line.
 *
 * @throws Error for anything else: what is more than that breaks some client (wire.md, 2.3).
 */
export function readEventStream(text: string): Streamed {
  const frames = text.split('\n\n');
  if (frames.pop() !== '') throw new Error(`the stream ends in the middle of a frame: ${JSON.stringify(text.slice(-200))}`);
  const comments: string[] = [];
  const payloads: string[] = [];
  for (const frame of frames) {
    if (/[\r\n]/.test(frame)) throw new Error(`a frame of several lines: ${JSON.stringify(frame)}`);
    if (frame.startsWith(': ')) comments.push(frame.slice(2));
    else if (frame.startsWith('data: ') && frame.length > 'data: '.length) payloads.push(frame.slice('data: '.length));
    else throw new Error(`neither data nor a comment: ${JSON.stringify(frame)}`);
  }
  const done = payloads.at(-1) === '[DONE]';
  if (done) payloads.pop();
  const parsed: Record<string, unknown>[] = payloads.map((payload) => JSON.parse(payload));
  const chunks = parsed.filter((one) => !('error' in one)) as unknown as Chunk[];
  return {
    chunks,
    errors: parsed.filter((one) => 'error' in one).map((one) => one.error),
    comments,
    done,
    text: chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''),
  };
}
