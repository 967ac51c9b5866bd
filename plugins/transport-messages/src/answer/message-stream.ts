import type { AgentEvent } from '@plugboard/kernel';
import type { Failure, TurnFinished, TurnText, TurnToolCall, TurnToolCallDelta } from '@plugboard/kernel/contracts';
import { ExtrasCollector, escaped, joined, type TurnWriter } from '@plugboard/turn-routes';
import { SIGNATURE } from '../request/content.js';
import {
  type AnswerBlock,
  type AnswerHead,
  callBlock,
  isVisible,
  resultBlock,
  type Stop,
  sealedBlock,
  stopOf,
  usageOf,
  type Visibility,
} from './blocks.js';
import type { Answer } from './message.js';

/** The head of a stream. */
export const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/** Milliseconds of silence after which a `ping` is written. */
export const PING_INTERVAL = 15_000;

const PING = frame('ping', { type: 'ping' });

/**
 * Writes the events of a turn as events of the protocol (CL-20). Each step begins a new block, so
 * that the texts of two steps stay apart.
 */
export class MessageWriter implements TurnWriter {
  readonly comment = PING;
  ended = false;
  started = false;

  readonly #head: AnswerHead;
  readonly #visibility: Visibility;
  readonly #extras: ExtrasCollector;
  readonly #errorOf: (failure: Failure) => object;
  /** The index of the next block. */
  #index = 0;
  #open: 'text' | 'thinking' | 'tool_use' | undefined;
  /** The call whose arguments are being written, and how many characters were. */
  #call: { readonly id: string; written: number } | undefined;
  /** What came while a call was being written. */
  readonly #waiting: AgentEvent[] = [];
  /** What stands before and after a text in the deltas of the open block. */
  #before = '';
  #after = '';
  #refused = false;

  /** @param errorOf returns the error object for a failed turn. */
  constructor(
    head: AnswerHead,
    options: {
      readonly visibility: Visibility;
      readonly errorOf: (failure: Failure) => object;
    },
  ) {
    this.#head = head;
    this.#visibility = options.visibility;
    this.#extras = new ExtrasCollector(options.visibility.seal);
    this.#errorOf = options.errorOf;
  }

  get opening(): string {
    return openingOf(this.#head);
  }

  write(batch: readonly AgentEvent[]): string {
    this.started = true;
    let out = '';
    for (const event of batch) {
      this.#extras.add(event);
      if (event.type === 'step') {
        out += this.#closeAll();
        this.#refused = false;
      } else if (event.type === 'finished') out += this.#finish(event);
      else if (event.type === 'failed') {
        this.ended = true;
        out += frame('error', this.#errorOf(event.failure));
      } else if (isVisible(event, this.#visibility)) out += this.#content(event);
    }
    return out;
  }

  #content(event: AgentEvent): string {
    if (this.#call && !('id' in event && event.id === this.#call.id)) {
      this.#waiting.push(event);
      return '';
    }
    switch (event.type) {
      case 'text':
        return this.#text(event);
      case 'reasoning':
        return `${this.#begin('thinking')}${this.#before}${escaped(event.text)}${this.#after}`;
      case 'tool-call-delta':
        return this.#callDelta(event);
      case 'tool-call':
        if (this.#call) return this.#callDelta(event, this.#call.written) + this.#close();
        return this.#close() + blockFrames(this.#index++, callBlock(event, this.#visibility));
      case 'tool-result':
        return this.#close() + blockFrames(this.#index++, resultBlock(event, this.#visibility));
      default:
        return '';
    }
  }

  #text({ text, json, isRefusal, isNotice }: TurnText): string {
    this.#refused ||= isRefusal === true;
    if (isNotice) return this.#close() + blockFrames(this.#index++, { type: 'text', text });
    return `${this.#begin('text')}${this.#before}${json ?? escaped(text)}${this.#after}`;
  }

  /**
   * A piece of the arguments of a call. Blocks are written one after the other: of calls that a
   * model writes at once, the first one comes in pieces, and what else it writes meanwhile after
   * it.
   *
   * @param from what was written of the arguments.
   */
  #callDelta({ id, name, arguments: text }: TurnToolCallDelta | TurnToolCall, from = 0): string {
    let out = '';
    if (!this.#call) {
      out = this.#close() + start(this.#index, { type: 'tool_use', id, name, input: {} });
      this.#open = 'tool_use';
      this.#call = { id, written: 0 };
    }
    const piece = text.slice(from);
    this.#call.written += piece.length;
    return piece === '' ? out : out + delta(this.#index, { type: 'input_json_delta', partial_json: piece });
  }

  /** Opens a block of a kind, unless it is open. */
  #begin(type: 'text' | 'thinking'): string {
    if (this.#open === type) return '';
    const closing = this.#close();
    this.#open = type;
    const { start, before, after } = pieces(type, this.#index);
    this.#before = before;
    this.#after = after;
    return closing + start;
  }

  #close(): string {
    if (!this.#open) return '';
    const index = this.#index++;
    const signature = this.#open === 'thinking' ? delta(index, { type: 'signature_delta', signature: SIGNATURE }) : '';
    this.#open = undefined;
    this.#call = undefined;
    const waiting = this.#waiting.splice(0);
    return signature + stop(index) + waiting.map((event) => this.#content(event)).join('');
  }

  /** Closes what is open, and writes and closes what waited for it. */
  #closeAll(): string {
    let out = '';
    while (this.#open) out += this.#close();
    return out;
  }

  #finish(event: TurnFinished): string {
    this.ended = true;
    const closing = this.#closeAll();
    const block = sealedBlock(this.#extras, event);
    const sealed = block ? blockFrames(this.#index, block) : '';
    return closing + sealed + endOf(stopOf(event, this.#refused), usageOf(event.usage));
  }
}

/** An answer that is known as a whole, as a stream. */
export async function* replayedStream(head: AnswerHead, { content, stop, usage }: Answer): AsyncGenerator<string> {
  yield openingOf(head);
  for (const [index, block] of content.entries()) yield blockFrames(index, block);
  yield endOf(stop, usage);
}

function openingOf({ id, model }: AnswerHead): string {
  const usage = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
  const beside = { content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, service_tier: 'standard' } };
  return frame('message_start', { type: 'message_start', message: { id, type: 'message', role: 'assistant', model, ...beside } });
}

function endOf(stop: Stop, usage: object): string {
  const ending = { type: 'message_delta', delta: stop, usage };
  return frame('message_delta', ending) + frame('message_stop', { type: 'message_stop' });
}

/** The frames of a whole block. */
function blockFrames(index: number, block: AnswerBlock): string {
  switch (block.type) {
    case 'text':
    case 'thinking': {
      const { start: opening, before, after } = pieces(block.type, index);
      const signature = block.type === 'thinking' ? delta(index, { type: 'signature_delta', signature: block.signature }) : '';
      const text = block.type === 'text' ? block.text : block.thinking;
      return `${opening}${before}${escaped(text)}${after}${signature}${stop(index)}`;
    }
    case 'tool_use':
    case 'mcp_tool_use': {
      const input = delta(index, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) });
      return start(index, { ...block, input: {} }) + input + stop(index);
    }
    case 'mcp_tool_result':
    case 'redacted_thinking':
      return start(index, block) + stop(index);
  }
}

/** The constant parts of the frames of a text, so that a token costs one concatenation. */
function pieces(type: 'text' | 'thinking', index: number) {
  const isText = type === 'text';
  return {
    start: start(index, isText ? { type, text: '' } : { type, thinking: '', signature: '' }),
    before: joined(
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":`,
      isText ? '{"type":"text_delta","text":"' : '{"type":"thinking_delta","thinking":"',
    ),
    after: '"}}\n\n',
  };
}

function start(index: number, content_block: object): string {
  return frame('content_block_start', { type: 'content_block_start', index, content_block });
}

function delta(index: number, delta: object): string {
  return frame('content_block_delta', { type: 'content_block_delta', index, delta });
}

function stop(index: number): string {
  return frame('content_block_stop', { type: 'content_block_stop', index });
}

function frame(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
