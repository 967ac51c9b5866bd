import type { AgentEvent } from '@plugboard/kernel';
import type { Failure, TurnFinished, TurnText, TurnToolCall, TurnToolCallDelta } from '@plugboard/kernel/contracts';
import type { ErrorBody } from '@plugboard/openai-protocol';
import { escaped, joined, piecesOf, type TurnWriter } from '@plugboard/turn-routes';
import { type AnswerHead, usageOf } from './completion.js';
import type { StreamEncoder } from './stream-encoder.js';

/** Characters per delta. Some clients limit lines to 64 KiB, and a character may need six bytes. */
const MAX_DELTA = 8192;

/** Between the texts of two steps, escaped. */
const SEPARATOR = '\\n\\n';

/** Whether an event produces a chunk. */
export function isVisible(event: AgentEvent): boolean {
  return (
    (event.type === 'text' && !isEmpty(event)) || event.type === 'tool-call-delta' || (event.type === 'tool-call' && !event.tool)
  );
}

/** Prefers `json`: `text` may be decoded lazily. */
function isEmpty(event: TurnText): boolean {
  return (event.json ?? event.text) === '';
}

/**
 * Writes the events of a turn as framed chunks. The constant parts of a chunk are built once, so
 * that a token costs one concatenation. Text is inserted as the model server escaped it, where
 * available.
 */
export class ChunkWriter implements TurnWriter {
  /** Whether the end of the turn was written. Nothing may follow. */
  ended = false;
  /** Whether an event has arrived. Until then the turn waits in the queue. */
  started = false;

  readonly #head: AnswerHead;
  readonly #encoder: StreamEncoder;
  readonly #errorOf: (failure: Failure) => ErrorBody;
  readonly #includeUsage: boolean;
  readonly #beforeText: string;
  readonly #afterText: string;

  /** The tool calls in the stream. */
  #toolCalls = 0;
  /** Those that are not complete, by their ids: their indexes, and the characters written. */
  readonly #openCalls = new Map<string, { readonly index: number; written: number }>();
  #hasText = false;
  /** What the model says in a turn that may ask for approval. Dropped if it does (S-74). */
  #held: string | undefined;
  #isShown = false;
  /** Inserted before the next text, to separate the texts of two steps. */
  #separator = '';

  /** @param errorOf returns the error object for a failed turn. */
  constructor(
    head: AnswerHead,
    options: {
      readonly encoder: StreamEncoder;
      readonly includeUsage: boolean;
      readonly errorOf: (failure: Failure) => ErrorBody;
    },
  ) {
    this.#head = head;
    this.#encoder = options.encoder;
    this.#includeUsage = options.includeUsage;
    this.#errorOf = options.errorOf;
    this.#beforeText = joined(this.#beforeDelta, '{"content":"');
    this.#afterText = joined('"}', this.#afterDelta);
  }

  /** The first chunk, with the role. */
  get opening(): string {
    return this.#chunk('{"role":"assistant","content":"","refusal":null}');
  }

  /** A chunk up to the opening bracket of `choices`. */
  get #envelope(): string {
    const { id, created, model, fingerprint } = this.#head;
    return (
      `${this.#encoder.before}{"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},` +
      `"model":${JSON.stringify(model)},"service_tier":"default","system_fingerprint":${JSON.stringify(fingerprint)},"choices":[`
    );
  }

  get #beforeDelta(): string {
    return `${this.#envelope}{"index":0,"delta":`;
  }

  get #afterDelta(): string {
    return `,"logprobs":null,"finish_reason":null}${this.#includeUsage ? '],"usage":null}' : ']}'}${this.#encoder.after}`;
  }

  /** The comment for a silent stream: `queued` or `keep-alive`. */
  get comment(): string {
    return this.#encoder.comment(this.started ? 'keep-alive' : 'queued');
  }

  /** Returns the frames of a batch; empty if it has no content. */
  write(batch: readonly AgentEvent[]): string {
    this.started = true;
    let out = '';
    for (const event of batch) {
      switch (event.type) {
        case 'started':
          if (event.mayAsk) this.#held = '';
          break;
        case 'text':
          if (!isEmpty(event)) out += this.#say(event);
          break;
        case 'step':
          if (this.#hasText) this.#separator = SEPARATOR;
          break;
        case 'tool-call-delta':
          out += this.#callDelta(event);
          break;
        case 'tool-call':
          if (!event.tool) out += this.#toolCall(event);
          break;
        case 'finished':
          out += this.#release() + this.#finish(event);
          break;
        case 'failed':
          out += this.#release() + this.#frame(JSON.stringify(this.#errorOf(event.failure))) + this.#end();
          break;
      }
    }
    return out;
  }

  #say(event: TurnText): string {
    if (event.isRefusal) return this.#refusal(event.text);
    if (event.isNotice) {
      if (this.#held !== undefined) this.#held = '';
      this.#separator = this.#isShown ? SEPARATOR : '';
      return this.#text(event);
    }
    if (this.#held === undefined) return this.#text(event);
    this.#held += (this.#separator && '\n\n') + event.text;
    this.#separator = '';
    this.#hasText = true;
    return '';
  }

  /** What was kept back. */
  #release(): string {
    const text = this.#held ?? '';
    this.#held = undefined;
    return text === '' ? '' : this.#text({ type: 'text', text });
  }

  #text(event: TurnText): string {
    const separator = this.#separator;
    this.#separator = '';
    this.#hasText = true;
    this.#isShown = true;
    const json = event.json ?? escaped(event.text);
    if (json.length <= MAX_DELTA) return this.#beforeText + separator + json + this.#afterText;
    let out = '';
    for (const piece of piecesOf(event.text, MAX_DELTA))
      out += this.#beforeText + (out === '' ? separator : '') + escaped(piece) + this.#afterText;
    return out;
  }

  #refusal(text: string): string {
    let out = '';
    for (const piece of piecesOf(text, MAX_DELTA)) out += this.#chunk(JSON.stringify({ refusal: piece }));
    return out;
  }

  /** A call of a client tool: a chunk with the name, then chunks with the arguments. */
  #callDelta({ id, name, arguments: args }: TurnToolCallDelta): string {
    let out = '';
    let call = this.#openCalls.get(id);
    if (!call) {
      call = { index: this.#toolCalls++, written: 0 };
      this.#openCalls.set(id, call);
      const opening = { index: call.index, id, type: 'function', function: { name, arguments: '' } };
      out = this.#chunk(JSON.stringify({ tool_calls: [opening] }));
    }
    call.written += args.length;
    for (const piece of piecesOf(args, MAX_DELTA)) {
      out += this.#chunk(JSON.stringify({ tool_calls: [{ index: call.index, function: { arguments: piece } }] }));
    }
    return out;
  }

  /** A complete call: what its deltas have not said. */
  #toolCall({ id, name, arguments: args }: TurnToolCall): string {
    const written = this.#openCalls.get(id)?.written ?? 0;
    const out = this.#callDelta({ type: 'tool-call-delta', id, name, arguments: args.slice(written) });
    this.#openCalls.delete(id);
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
