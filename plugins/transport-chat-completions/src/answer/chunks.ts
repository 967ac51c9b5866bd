import type { AgentEvent, Failure, TurnFinished, TurnText, TurnToolCall } from '@plugboard/kernel';
import type { ErrorBody, StreamEncoder, TurnLogFields } from '@plugboard/openai-protocol';
import { type AnswerHead, usageOf } from './completion.js';

/** Characters of one delta at most: readers exist whose lines end at 64 KiB, and one character may need six bytes. */
const MAX_DELTA = 8192;

/** Whether a chunk is written for an event. */
export function isShown(event: AgentEvent): boolean {
  return (event.type === 'text' && !isEmpty(event)) || (event.type === 'tool-call' && !event.tool);
}

/** A text may be decoded only when it is asked for, so the JSON that is at hand is looked at first, here and below. */
function isEmpty(event: TurnText): boolean {
  return (event.json ?? event.text) === '';
}

/**
 * Writes the events of one turn as the protocol's chunks, framed. All that is the same in every chunk is built once, so that a
 * token costs one concatenation: between the constant parts goes its text as the model server escaped it, where that is at hand.
 */
export class ChunkWriter {
  /** The chunk that names the role. It comes first, and once. */
  readonly opening: string;
  /** Whether the end of the turn was written; nothing follows it. */
  ended = false;
  /** Whether anything is known of the turn: until then it waits in a queue. */
  begun = false;

  readonly #encoder: StreamEncoder;
  readonly #facts: TurnLogFields;
  readonly #errorOf: (failure: Failure) => ErrorBody;
  readonly #includeUsage: boolean;
  /** Up to the opening bracket of `choices`. */
  readonly #envelope: string;
  readonly #beforeDelta: string;
  readonly #afterDelta: string;
  readonly #beforeText: string;
  readonly #afterText: string;

  #toolCalls = 0;
  #hasSpoken = false;
  /** What stands before the next text, so that the texts of two steps do not run into each other. */
  #gap = '';

  /** @param errorOf the error object that a failed turn is told with. */
  constructor(
    head: AnswerHead,
    options: {
      readonly encoder: StreamEncoder;
      readonly facts: TurnLogFields;
      readonly includeUsage: boolean;
      readonly errorOf: (failure: Failure) => ErrorBody;
    },
  ) {
    this.#encoder = options.encoder;
    this.#facts = options.facts;
    this.#includeUsage = options.includeUsage;
    this.#errorOf = options.errorOf;
    const { before, after } = options.encoder;
    this.#envelope =
      `${before}{"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)}` +
      `,"service_tier":"default","system_fingerprint":${JSON.stringify(head.fingerprint)},"choices":[`;
    const end = `${this.#includeUsage ? '],"usage":null}' : ']}'}${after}`;
    this.#beforeDelta = `${this.#envelope}{"index":0,"delta":`;
    this.#afterDelta = `,"logprobs":null,"finish_reason":null}${end}`;
    this.#beforeText = `${this.#beforeDelta}{"content":"`;
    this.#afterText = `"}${this.#afterDelta}`;
    this.opening = this.#chunk('{"role":"assistant","content":"","refusal":null}');
  }

  /** What goes out when there is nothing to say: that the turn waits, or that the connection lives. */
  get comment(): string {
    return this.#encoder.comment(this.begun ? 'keep-alive' : 'queued');
  }

  /** The frames of a batch, one after the other; empty where there is nothing to show. */
  write(batch: readonly AgentEvent[]): string {
    this.begun = true;
    let out = '';
    for (const event of batch) {
      switch (event.type) {
        case 'text':
          if (!isEmpty(event)) out += this.#text(event);
          break;
        case 'step':
          this.#facts.step();
          if (this.#hasSpoken) this.#gap = '\\n\\n';
          break;
        case 'tool-call':
          this.#facts.toolCall();
          if (!event.tool) out += this.#toolCall(event);
          break;
        case 'finished':
          this.#facts.finished(event);
          out += this.#finish(event);
          break;
        case 'failed':
          this.#facts.failed(event.failure);
          out += this.#frame(JSON.stringify(this.#errorOf(event.failure))) + this.#end();
          break;
      }
    }
    return out;
  }

  #text(event: TurnText): string {
    const gap = this.#gap;
    this.#gap = '';
    this.#hasSpoken = true;
    const json = event.json ?? escaped(event.text);
    if (json.length <= MAX_DELTA) return this.#beforeText + gap + json + this.#afterText;
    let out = '';
    for (const piece of pieces(event.text)) out += this.#beforeText + (out === '' ? gap : '') + escaped(piece) + this.#afterText;
    return out;
  }

  /** A call for a tool of the caller's own: who is called first, then with what. */
  #toolCall({ id, name, arguments: args }: TurnToolCall): string {
    const index = this.#toolCalls++;
    const call = { index, id, type: 'function', function: { name, arguments: '' } };
    let out = this.#chunk(JSON.stringify({ tool_calls: [call] }));
    for (const piece of pieces(args)) {
      out += this.#chunk(JSON.stringify({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
    return out;
  }

  #finish({ reason, usage }: TurnFinished): string {
    const { after } = this.#encoder;
    const finish = `${this.#beforeDelta}{},"logprobs":null,"finish_reason":"${reason}"}]`;
    if (!this.#includeUsage) return `${finish}}${after}${this.#end()}`;
    return `${finish},"usage":null}${after}${this.#envelope}],"usage":${JSON.stringify(usageOf(usage))}}${after}${this.#end()}`;
  }

  #chunk(delta: string): string {
    return this.#beforeDelta + delta + this.#afterDelta;
  }

  #frame(json: string): string {
    return this.#encoder.before + json + this.#encoder.after;
  }

  #end(): string {
    this.ended = true;
    return this.#encoder.done;
  }
}

/**
 * The body of a stream: one text for each batch that shows something, so that what came together goes out together.
 *
 * @param speaks whether the first events already show something: the opening then goes out with them, and else at once.
 * @param onEnd called when nothing more will be written, however that came.
 * @throws where the events end without a terminal event: a stream must not end cleanly then.
 */
export async function* streamOf(
  events: AsyncIterable<readonly AgentEvent[]> | Iterable<readonly AgentEvent[]>,
  writer: ChunkWriter,
  speaks: boolean,
  onEnd: () => void,
): AsyncGenerator<string> {
  try {
    let opening = writer.opening;
    if (!speaks) {
      yield writer.begun ? opening : opening + writer.comment;
      opening = '';
    }
    for await (const batch of events) {
      const frames = writer.write(batch);
      if (frames === '') continue;
      yield opening + frames;
      if (writer.ended) return;
      opening = '';
    }
  } finally {
    onEnd();
  }
  throw new Error('the events of a turn ended without a terminal event');
}

/** A text as it stands between the quotes of a JSON string. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** A text in pieces of `MAX_DELTA` characters, none of which ends in the middle of a surrogate pair. */
function* pieces(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = start + MAX_DELTA;
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;
    yield text.slice(start, end);
    start = end;
  }
}
