import type { IdSource, ModelEnd, ModelEvent, Usage } from '@plugboard/kernel';
import type { Failures } from './failures.js';
import { isObject, isText } from './json.js';
import { ToolCalls } from './tool-calls.js';
import { usageOf } from './usage.js';

/**
 * What a model server says, read piece by piece: the chunks of a stream, or the one object of an answer that was asked for whole, which is
 * read like a stream of one chunk. Text and reasoning are told at once; tool calls, usage and the end when all has come.
 */
export class Answer {
  readonly #failures: Failures;
  readonly #ids: IdSource;
  readonly #toolCalls = new ToolCalls();
  #usage: Usage | undefined;
  #finishReason: string | undefined;
  #hasChoice = false;

  constructor(failures: Failures, ids: IdSource) {
    this.#failures = failures;
    this.#ids = ids;
  }

  /** Whether the model has said why it stopped: then all of the answer has come, its usage perhaps apart. */
  get isFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  /**
   * Reads a chunk, or a whole answer, and adds to `events` what it tells.
   *
   * @returns the text, where the chunk is one piece of text and means nothing else.
   * @throws ModelError where it is an error, or nothing of the protocol.
   */
  add(chunk: unknown, events: ModelEvent[]): string | undefined {
    if (!isObject(chunk)) throw this.#failures.garbled('JSON that is no object');
    if (isObject(chunk.error) || isText(chunk.error)) throw this.#failures.reported(chunk.error);
    // The last one counts: some servers send a running count with every chunk.
    if (isObject(chunk.usage)) this.#usage = usageOf(chunk.usage);
    const choice = firstOf(chunk.choices);
    if (choice === undefined) return undefined;
    this.#hasChoice = true;
    if (isText(choice.finish_reason)) this.#finishReason = choice.finish_reason;
    const said = choice.delta ?? choice.message;
    if (!isObject(said)) return undefined;

    // Two names of one thing; a server that sends both sends the same under both.
    const reasoning = isText(said.reasoning_content) ? said.reasoning_content : said.reasoning;
    if (isText(reasoning)) events.push({ type: 'reasoning', text: reasoning });
    if (isText(said.content)) events.push({ type: 'text', text: said.content });
    else if (Array.isArray(said.content)) addParts(said.content, events);
    if (isText(said.refusal)) events.push({ type: 'text', text: said.refusal });
    const calls = Array.isArray(said.tool_calls) ? said.tool_calls : [];
    for (const call of calls) this.#toolCalls.add(call);

    const saysMore =
      isObject(chunk.usage) || isText(choice.finish_reason) || isText(reasoning) || isText(said.refusal) || calls.length > 0;
    return isText(said.content) && !saysMore ? said.content : undefined;
  }

  /**
   * All has come: adds the tool calls, the usage and the end.
   *
   * @param isWhole whether what has come is whole in itself. Then a missing finish reason means no more than that the server does not tell one; at
   * the end of a stream it means that the stream was cut off.
   * @throws ModelError
   */
  end(isWhole: boolean, events: ModelEvent[]): void {
    if (this.#finishReason === 'error') throw this.#failures.reported(undefined);
    if (this.#finishReason === undefined && !isWhole) throw this.#failures.cutOff();
    if (!this.#hasChoice) throw this.#failures.garbled('an answer without choices');
    const reason = reasonOf(this.#finishReason);
    const calls = this.#toolCalls.all(this.#ids);
    for (const call of calls) {
      if (call.name !== '') events.push(call);
      // The limit may fall before the name; otherwise there is no sense in such a call.
      else if (reason !== 'length') throw this.#failures.garbled('a tool call without a name');
    }
    if (this.#usage) events.push({ type: 'usage', usage: this.#usage });
    events.push({ type: 'end', reason: inAccord(reason, calls.length > 0) });
  }
}

/** The first choice. More than one is never asked for; a chunk may still be about another. */
function firstOf(choices: unknown): Readonly<Record<string, unknown>> | undefined {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && !choice.index ? choice : undefined;
}

/** Content in parts is what Mistral's reasoning models send: `text`, and `thinking` that holds text parts of its own. */
function addParts(parts: readonly unknown[], events: ModelEvent[]): void {
  for (const part of parts) {
    if (!isObject(part)) continue;
    if (part.type === 'text' && isText(part.text)) events.push({ type: 'text', text: part.text });
    for (const thought of part.type === 'thinking' && Array.isArray(part.thinking) ? part.thinking : []) {
      if (isObject(thought) && isText(thought.text)) events.push({ type: 'reasoning', text: thought.text });
    }
  }
}

const REASONS: ReadonlyMap<string, ModelEnd['reason']> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['function_call', 'tool_calls'],
  // Names that some servers brought along from protocols of their own.
  ['max_tokens', 'length'],
  ['model_length', 'length'],
]);

/** A reason that nobody knows is still a server's word that the model has stopped: the answer is whole, and `stop` says just that. */
function reasonOf(finishReason: string | undefined): ModelEnd['reason'] {
  return REASONS.get(finishReason ?? 'stop') ?? 'stop';
}

/** Some servers say `stop` beside tool calls, and some `tool_calls` beside none: what there is counts. */
function inAccord(reason: ModelEnd['reason'], hasCalls: boolean): ModelEnd['reason'] {
  if (reason === 'stop' && hasCalls) return 'tool_calls';
  return reason === 'tool_calls' && !hasCalls ? 'stop' : reason;
}
