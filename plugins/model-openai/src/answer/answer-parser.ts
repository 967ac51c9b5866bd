import type { IdSource, ModelEvent } from '@plugboard/kernel';
import type { ToolDeclaration, Usage } from '@plugboard/kernel/contracts';
import { connectionData } from '../extra/connection-data.js';
import { AnswerTooLarge } from '../failure/answer-too-large.js';
import { findError } from '../failure/error-object.js';
import type { Failures } from '../failure/failures.js';
import { isObject, isText } from '../json/json.js';
import { blocksText, MessageFields } from './extra-fields.js';
import { type Finish, readFinishReason } from './finish-reason.js';
import { ThinkTags } from './think-tags.js';
import { ToolCalls } from './tool-calls.js';
import { findUsage, readTimings } from './usage.js';
import { WholeText } from './whole-text.js';

type Fields = Readonly<Record<string, unknown>>;

/** How an answer ended: `done` by `[DONE]`, `cut` without it, `body` as one JSON body. */
export type Ending = 'done' | 'cut' | 'body';

/** What servers call the model's reasoning. One that uses two sends the same text in both. */
const REASONING = ['reasoning_content', 'reasoning', 'reasoning_text', 'thinking'] as const;

/** Characters of arguments and of members for the next request, which are kept until the end. */
const MAX_KEPT = 16 * 2 ** 20;

export interface AnswerOptions {
  readonly failures: Failures;
  readonly ids: IdSource;
  /** The tools that the request declared. */
  readonly tools: readonly ToolDeclaration[];
  /** Those of them whose calls the caller reads while the model writes them. */
  readonly streamedTools?: readonly string[];
  /** Identifies the model, for the data that is sent back to it. */
  readonly fingerprint: string;
  /** When reasoning goes back to the server with the answer. */
  readonly keepsReasoning: 'always' | 'with calls' | 'never';
  /** Whether to split `<think>` tags off. */
  readonly splitThinkTags: boolean;
}

/**
 * Turns the chunks of an answer into events. The JSON object of an answer that is not streamed is
 * read like a stream of one chunk. Text, reasoning and pieces of streamed tool calls become events
 * at once; complete tool calls, usage and the end follow when the answer is complete.
 */
export class AnswerParser {
  readonly #failures: Failures;
  readonly #ids: IdSource;
  readonly #toolCalls: ToolCalls;
  readonly #fields = new MessageFields();
  readonly #thinkTags: ThinkTags | undefined;
  readonly #text = new WholeText();
  readonly #refusal = new WholeText();
  readonly #reasoning = new WholeText();
  readonly #fingerprint: string;
  readonly #keepsReasoning: AnswerOptions['keepsReasoning'];
  #usage: Usage | undefined;
  #timings: unknown;
  #finish: Finish | undefined;
  #stopSequence: string | undefined;
  #hasChoice = false;
  #hasText = false;
  /** The last chunk without a choice, for the error if none has one. */
  #withoutChoice: unknown;
  /** Whether a chunk had a list of choices, as only chat-completions servers send them. */
  #isChatServer = false;
  /** Whether the server said that it blocked the prompt. */
  #isBlocked = false;

  constructor({ failures, ids, tools, streamedTools = [], fingerprint, keepsReasoning, splitThinkTags }: AnswerOptions) {
    this.#fingerprint = fingerprint;
    this.#keepsReasoning = keepsReasoning;
    if (splitThinkTags) this.#thinkTags = new ThinkTags();
    this.#failures = failures;
    this.#ids = ids;
    this.#toolCalls = new ToolCalls((name) => tools.some((tool) => tool.name === name), streamedTools);
  }

  /** Whether a finish reason has arrived: nothing follows, except perhaps the usage. */
  get isFinished(): boolean {
    return this.#finish !== undefined;
  }

  /** Whether a character of the text has arrived in part. */
  get isMidCharacter(): boolean {
    return this.#text.isSplit;
  }

  /** Characters that are kept until the answer is complete. */
  get held(): number {
    return this.#fields.size + this.#toolCalls.size;
  }

  /** Whether a part of an answer has arrived. */
  get hasBegun(): boolean {
    return this.#hasChoice;
  }

  /**
   * Reads a chunk, or a whole answer, and appends its events.
   *
   * @returns the text, if the chunk carries one piece of text and nothing else.
   * @throws ModelError if it is an error or not part of the protocol.
   */
  add(chunk: unknown, events: ModelEvent[]): string | undefined {
    if (chunk === null) return undefined; // some servers keep the connection alive with it
    if (Array.isArray(chunk)) {
      if (chunk.length === 0) this.#withoutChoice = chunk;
      for (const one of chunk) this.add(one, events);
      return undefined;
    }
    if (!isObject(chunk)) throw this.#unreadable('JSON that is not an object', chunk);
    const choice = firstOf(chunk.choices);
    const error = findError(chunk, choice);
    if (error !== undefined) throw this.#failures.reported(error);

    const usage = findUsage(chunk, choice);
    // The last one counts: some servers send a running total with every chunk.
    if (usage) this.#usage = usage;
    this.#timings = chunk.timings ?? this.#timings;
    if (choice === undefined) {
      this.#isChatServer ||= Array.isArray(chunk.choices);
      this.#isBlocked ||= isBlocked(chunk);
      this.#withoutChoice = chunk;
      return undefined;
    }
    this.#hasChoice = true;
    const finish = readFinishReason(choice.finish_reason, choice.native_finish_reason);
    if (finish) this.#finish = finish;
    // vLLM and SGLang name the stop sequence, or the number of a stop token.
    const matched = choice.stop_reason ?? choice.matched_stop;
    if (isText(matched)) this.#stopSequence = matched;
    const text = this.#addDelta(choice, events);
    return usage || finish ? undefined : text;
  }

  /** Reads a delta. Returns its text if it carries nothing else. */
  #addDelta(choice: Fields, events: ModelEvent[]): string | undefined {
    const delta = choice.delta ?? choice.message;
    if (!isObject(delta)) {
      // The form of the older completions endpoint.
      if (isText(choice.text)) this.#addText(choice.text, events);
      return undefined;
    }
    const hasFields = this.#fields.add(delta);
    const reasoning = reasoningOf(delta) ?? (hasFields ? blocksText(delta) : '');
    if (reasoning !== '') this.#addReasoning(reasoning, events);
    const { content, refusal, tool_calls: calls, function_call: call } = delta;
    if (isText(content)) this.#addText(content, events);
    else if (Array.isArray(content)) for (const part of content) this.#addPart(part, events);
    if (isText(refusal)) this.#addRefusal(refusal, events);
    if (Array.isArray(calls)) for (const one of calls) this.#toolCalls.add(one, events, delta === choice.message);
    // The form of the protocol before tool calls.
    const isCall = isObject(call) && (isText(call.name) || isText(call.arguments));
    if (isCall) this.#toolCalls.add({ function: call }, events);
    if (this.held > MAX_KEPT) throw new AnswerTooLarge('tool calls and reasoning', MAX_KEPT);
    const hasMore = reasoning !== '' || hasFields || isText(refusal) || (Array.isArray(calls) && calls.length > 0) || isCall;
    return isText(content) && !hasMore && (this.#thinkTags?.isOver ?? true) ? content : undefined;
  }

  #addText(piece: string, events: ModelEvent[]): void {
    this.#hasText = true;
    this.#pushText(this.#text.add(piece), events);
  }

  #pushText(text: string, events: ModelEvent[]): void {
    if (text === '') return;
    if (this.#thinkTags) this.#thinkTags.add(text, events);
    else events.push({ type: 'text', text });
  }

  #addRefusal(piece: string, events: ModelEvent[]): void {
    this.#hasText = true;
    const text = this.#refusal.add(piece);
    if (text !== '') events.push({ type: 'text', text, isRefusal: true });
  }

  #addReasoning(piece: string, events: ModelEvent[]): void {
    const text = this.#reasoning.add(piece);
    if (text !== '') events.push({ type: 'reasoning', text });
  }

  /** Reads content in parts, as Mistral sends it: `text`, and `thinking` with text parts. */
  #addPart(part: unknown, events: ModelEvent[]): void {
    if (isText(part)) this.#addText(part, events);
    if (!isObject(part)) return;
    const { type, text, thinking, refusal } = part;
    if (type === 'thinking' || type === 'reasoning') {
      for (const thought of Array.isArray(thinking) ? thinking : [thinking ?? text]) {
        const piece = isObject(thought) ? thought.text : thought;
        if (isText(piece)) this.#addReasoning(piece, events);
      }
    } else if (isText(text)) this.#addText(text, events);
    else if (isText(refusal)) this.#addRefusal(refusal, events);
  }

  /**
   * Completes the answer: appends the tool calls, the usage and the end.
   *
   * @param stray unreadable text of the stream.
   * @throws ModelError if the answer is not complete.
   */
  end(ending: Ending, events: ModelEvent[], stray?: string): void {
    const finish = this.#finish;
    if (finish?.kind === 'failure') throw this.#failures.badFinishReason(finish.word);
    if (!this.#hasChoice && !this.#isBlocked) throw this.#noChoice(ending, stray);
    const hasCalls = !this.#toolCalls.isEmpty;
    const mayEnd = ending === 'body' || this.#isBlocked || (ending === 'done' && this.#hasText && !hasCalls);
    if (finish === undefined && !mayEnd) throw this.#failures.truncated(stray);
    const isSilent = !this.#hasText && !hasCalls;
    if (finish?.kind === 'unknown' && isSilent) throw this.#failures.badFinishReason(finish.word);
    const reason = finish?.kind === 'reason' ? finish.reason : this.#isBlocked ? 'content_filter' : 'stop';
    if (reason === 'tool_calls' && isSilent) throw this.#failures.missingCalls();

    this.#pushText(this.#text.end(), events);
    this.#thinkTags?.end(events);
    for (const call of this.#toolCalls.all(this.#ids, this.#fingerprint)) {
      if (call.name !== '') events.push(call);
      // A length limit may cut a call before its name. Any other call must have one.
      else if (reason !== 'length') throw this.#unreadable('a tool call without a name', call.arguments);
    }
    const usage = this.#usage ?? readTimings(this.#timings);
    if (usage) events.push({ type: 'usage', usage });
    const keepsReasoning = this.#keepsReasoning === 'always' || (hasCalls && this.#keepsReasoning === 'with calls');
    const extra = connectionData(this.#fingerprint, this.#fields.fields(keepsReasoning));
    const ended = reconcile(reason, hasCalls);
    const stopSequence = ended === 'stop' ? this.#stopSequence : undefined;
    events.push({
      type: 'end',
      reason: ended,
      ...(stopSequence !== undefined && { stopSequence }),
      ...(finish && finish.word !== ended && { rawReason: finish.word }),
      ...(extra ? { extra } : {}),
    });
  }

  #noChoice(ending: Ending, stray: string | undefined): Error {
    if (this.#isChatServer && this.#usage) return this.#failures.noAnswer(JSON.stringify(this.#withoutChoice));
    if (this.#withoutChoice !== undefined || ending === 'body')
      return this.#unreadable('an answer without choices', this.#withoutChoice ?? null);
    return stray === undefined ? this.#failures.truncated() : this.#unreadable('text instead of an answer', stray);
  }

  #unreadable(data: string, value: unknown): Error {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return this.#failures.unreadable(data, { text, hasBegun: this.#hasChoice || this.#isChatServer });
  }
}

/** Whether a chunk says that the prompt was blocked, in the form of Gemini's own API. */
function isBlocked({ promptFeedback, prompt_feedback: feedback = promptFeedback }: Fields): boolean {
  return isObject(feedback) && (isText(feedback.blockReason) || isText(feedback.block_reason));
}

/** The first choice. Requests ask for one only, but a chunk may belong to another. */
function firstOf(choices: unknown): Fields | undefined {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && !choice.index ? choice : undefined;
}

function reasoningOf(delta: Fields): string | undefined {
  for (const name of REASONING) {
    const text = delta[name];
    if (isText(text)) return text;
  }
  return undefined;
}

/** Some servers send `stop` with tool calls, some `tool_calls` without any: the calls decide. */
function reconcile(reason: 'stop' | 'length' | 'tool_calls' | 'content_filter', hasCalls: boolean): typeof reason {
  if (reason === 'stop' && hasCalls) return 'tool_calls';
  return reason === 'tool_calls' && !hasCalls ? 'stop' : reason;
}
