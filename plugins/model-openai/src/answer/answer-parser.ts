import type { IdSource, ModelEnd, ModelEvent, Usage } from '@plugboard/kernel';
import type { Failures } from '../failure/failures.js';
import { isObject, isText } from '../json/json.js';
import { ToolCalls } from './tool-calls.js';
import { readUsage } from './usage.js';

/**
 * Turns the chunks of an answer into events. The JSON object of an answer that is not streamed is
 * read like a stream of one chunk. Text and reasoning become events at once; tool calls, usage and
 * the end follow when the answer is complete.
 */
export class AnswerParser {
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

  /** Whether a finish reason has arrived: the answer is then complete, except perhaps for its usage. */
  get isFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  /**
   * Reads a chunk, or a whole answer, and appends its events.
   *
   * @returns the text, if the chunk carries one piece of text and nothing else.
   * @throws ModelError if it is an error or not part of the protocol.
   */
  add(chunk: unknown, events: ModelEvent[]): string | undefined {
    if (!isObject(chunk)) throw this.#failures.unreadable('JSON that is not an object');
    if (isObject(chunk.error) || isText(chunk.error)) throw this.#failures.reported(chunk.error);
    // The last one counts: some servers send a running total with every chunk.
    if (isObject(chunk.usage)) this.#usage = readUsage(chunk.usage);
    const choice = firstOf(chunk.choices);
    if (choice === undefined) return undefined;
    this.#hasChoice = true;
    if (isText(choice.finish_reason)) this.#finishReason = choice.finish_reason;
    const delta = choice.delta ?? choice.message;
    if (!isObject(delta)) return undefined;

    // Two names of one field. A server that sends both sends the same text in both.
    const reasoning = isText(delta.reasoning_content) ? delta.reasoning_content : delta.reasoning;
    if (isText(reasoning)) events.push({ type: 'reasoning', text: reasoning });
    if (isText(delta.content)) events.push({ type: 'text', text: delta.content });
    else if (Array.isArray(delta.content)) addParts(delta.content, events);
    if (isText(delta.refusal)) events.push({ type: 'text', text: delta.refusal });
    const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
    for (const call of calls) this.#toolCalls.add(call);

    const hasMore =
      isObject(chunk.usage) || isText(choice.finish_reason) || isText(reasoning) || isText(delta.refusal) || calls.length > 0;
    return isText(delta.content) && !hasMore ? delta.content : undefined;
  }

  /**
   * Completes the answer: appends the tool calls, the usage and the end.
   *
   * @param isWhole whether the body was one complete JSON object. A missing finish reason is then
   *   harmless; at the end of a stream it means that the stream was cut off.
   * @throws ModelError
   */
  end(isWhole: boolean, events: ModelEvent[]): void {
    if (this.#finishReason === 'error') throw this.#failures.reported(undefined);
    if (this.#finishReason === undefined && !isWhole) throw this.#failures.truncated();
    if (!this.#hasChoice) throw this.#failures.unreadable('an answer without choices');
    const reason = reasonOf(this.#finishReason);
    const calls = this.#toolCalls.all(this.#ids);
    for (const call of calls) {
      if (call.name !== '') events.push(call);
      // A length limit may cut a call before its name. Any other call must have one.
      else if (reason !== 'length') throw this.#failures.unreadable('a tool call without a name');
    }
    if (this.#usage) events.push({ type: 'usage', usage: this.#usage });
    events.push({ type: 'end', reason: reconcile(reason, calls.length > 0) });
  }
}

/** The first choice. Requests ask for one only, but a chunk may belong to another. */
function firstOf(choices: unknown): Readonly<Record<string, unknown>> | undefined {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && !choice.index ? choice : undefined;
}

/** Reads content in parts, as Mistral's reasoning models send it: `text`, and `thinking`, which contains text parts. */
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
  // Names from the native protocols of some servers.
  ['max_tokens', 'length'],
  ['model_length', 'length'],
]);

/** An unknown reason still means that the model has stopped: `stop`. */
function reasonOf(finishReason: string | undefined): ModelEnd['reason'] {
  return REASONS.get(finishReason ?? 'stop') ?? 'stop';
}

/** Some servers send `stop` with tool calls, some `tool_calls` without any: the calls decide. */
function reconcile(reason: ModelEnd['reason'], hasCalls: boolean): ModelEnd['reason'] {
  if (reason === 'stop' && hasCalls) return 'tool_calls';
  return reason === 'tool_calls' && !hasCalls ? 'stop' : reason;
}
