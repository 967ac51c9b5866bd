import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider';
import type { IdSource, ModelError, ModelEvent } from '@plugboard/kernel';
import type { ModelEnd, TurnError, Usage } from '@plugboard/kernel/contracts';
import type { Failures } from '../failure/failures.js';
import type { HeldAnswer } from '../http/held-answer.js';
import { isObject } from '../json/json.js';
import { type AnswerPart, type CallData, type MessageData, type PartOptions, stored } from '../request/answer-data.js';
import { MessageGuard } from './message-guard.js';

/** A part that is being read. */
interface OpenPart {
  /** Of thoughts: a text goes back as its events had it. */
  text: string;
  length: number;
  options: PartOptions | undefined;
}

interface Taken {
  readonly events: readonly ModelEvent[];
  readonly failure: ModelError | TurnError | undefined;
}

/** Tool calls of one answer (S-55). */
const MAX_CALLS = 256;
/** Characters of the arguments of one call (S-55). */
const MAX_ARGUMENTS = 2 ** 20;

/** The finish reasons of an answer that is complete. Others are failures (AI-4). */
const REASONS: Readonly<Partial<Record<LanguageModelV4FinishReason['unified'], ModelEnd['reason']>>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
};

/** Translates the parts of one answer to events, and keeps what must go back (AI-6, AI-7). */
export class AnswerReader {
  readonly #fingerprint: string;
  readonly #failures: Failures;
  readonly #ids: IdSource;
  readonly #now: () => number;
  readonly #held: HeldAnswer;
  readonly #guard = new MessageGuard();
  readonly #parts: AnswerPart[] = [];
  readonly #open = new Map<string, OpenPart>();
  readonly #calls = new Set<string>();
  readonly #streamedTools: readonly string[];
  /** Characters of the arguments of calls that are not complete, which the package collects. */
  readonly #written = new Map<string, number>();
  /** The names of the calls that are shown while they come, by their ids. */
  readonly #streamed = new Map<string, string>();
  #isStreaming = true;
  #hasReasoning = false;
  /** Whether the last batch ended the answer. */
  hasEnded = false;

  /** @param streamedTools those whose calls are shown while the model writes them. */
  constructor(
    fingerprint: string,
    failures: Failures,
    ids: IdSource,
    now: () => number,
    held: HeldAnswer,
    streamedTools: readonly string[],
  ) {
    this.#held = held;
    this.#streamedTools = streamedTools;
    this.#fingerprint = fingerprint;
    this.#failures = failures;
    this.#ids = ids;
    this.#now = now;
  }

  /** The events of these parts, and the failure behind them. */
  take(parts: readonly LanguageModelV4StreamPart[]): Taken {
    const events: ModelEvent[] = [];
    try {
      for (const part of parts) {
        this.#takePart(part, events);
        if (this.hasEnded) break; // a second message is not part of the answer (AI-15)
      }
      return { events, failure: undefined };
    } catch (error) {
      return { events, failure: this.#failures.of(error, this.#now()) };
    }
  }

  /** The stream ended without a finish reason (AI-3). */
  end(): Taken {
    return { events: [], failure: this.#failures.unfinished('interrupted', undefined) };
  }

  #takePart(part: LanguageModelV4StreamPart, events: ModelEvent[]): void {
    if ('providerMetadata' in part && part.providerMetadata) this.#held.add(JSON.stringify(part.providerMetadata).length);
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#open.set(`${kindOf(part)} ${part.id}`, { text: '', length: 0, options: part.providerMetadata });
        if (part.type === 'reasoning-start' && this.#hasReasoning) events.push({ type: 'reasoning', text: '\n\n' });
        break;
      case 'text-delta':
      case 'reasoning-delta': {
        const open = this.#openPart(part);
        open.length += part.delta.length;
        if (part.type === 'reasoning-delta') open.text += part.delta;
        if (part.delta === '') break;
        if (part.type === 'reasoning-delta') this.#hasReasoning = true;
        events.push({ type: kindOf(part), text: part.delta });
        break;
      }
      case 'text-end':
      case 'reasoning-end':
        this.#openPart(part);
        this.#close(`${kindOf(part)} ${part.id}`);
        break;
      case 'tool-input-start':
        this.#written.set(part.id, 0);
        if (this.#written.size > MAX_CALLS) throw this.#failures.tooManyCalls(MAX_CALLS);
        this.#streamCall(part, events);
        break;
      case 'tool-input-delta':
        this.#write(part.id, part.delta.length);
        if (this.#streamed.has(part.id)) events.push(this.#piece(part.id, part.delta));
        break;
      case 'tool-call':
        // A tool that the provider ran itself is part of its answer, not a call.
        if (!part.providerExecuted) events.push(this.#call(part));
        break;
      case 'raw':
        if (this.#guard.isAnother(part.rawValue)) throw this.#failures.spliced();
        break;
      case 'error':
        throw part.error;
      case 'finish':
        for (const key of [...this.#open.keys()]) this.#close(key);
        events.push(...this.#finish(part));
        this.hasEnded = true;
        break;
    }
  }

  /** The part that a delta belongs to. Its options are those of all its deltas (AI-6). */
  #openPart(
    part: Extract<LanguageModelV4StreamPart, { id: string; type: `${'text' | 'reasoning'}-${'delta' | 'end'}` }>,
  ): OpenPart {
    const key = `${kindOf(part)} ${part.id}`;
    const open = this.#open.get(key) ?? { text: '', length: 0, options: undefined };
    open.options = merged(open.options, part.providerMetadata);
    this.#open.set(key, open);
    return open;
  }

  #close(key: string): void {
    const { text, length, options } = this.#open.get(key) ?? { text: '', length: 0, options: undefined };
    this.#open.delete(key);
    const kept = options === undefined ? {} : { options: stored(options) };
    if (key.startsWith('reasoning')) this.#parts.push({ type: 'reasoning', text, ...kept });
    else if (length > 0 || options !== undefined) this.#parts.push({ type: 'text', length, ...kept });
  }

  /** Counts arguments that have come. @throws ModelError beyond the limit. */
  #write(id: string, length: number): void {
    const written = (this.#written.get(id) ?? 0) + length;
    if (written > MAX_ARGUMENTS) throw this.#failures.tooLarge('arguments of a tool call', MAX_ARGUMENTS);
    this.#written.set(id, written);
    this.#held.add(length);
  }

  /** Begins a call whose arguments are shown while they come, unless one before it is not shown. */
  #streamCall({ id, toolName }: Extract<LanguageModelV4StreamPart, { type: 'tool-input-start' }>, events: ModelEvent[]): void {
    const isShown = this.#streamedTools.includes(toolName) && this.#isStreaming && id !== '' && !this.#calls.has(id);
    this.#isStreaming = isShown;
    if (!isShown || this.#streamed.has(id)) return;
    this.#streamed.set(id, toolName);
    events.push(this.#piece(id, ''));
  }

  #piece(id: string, text: string): ModelEvent {
    return { type: 'tool-call-delta', id, name: this.#streamed.get(id) ?? '', arguments: text };
  }

  #call({
    toolCallId,
    toolName,
    input,
    providerMetadata,
  }: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): ModelEvent {
    if (this.#calls.size >= MAX_CALLS) throw this.#failures.tooManyCalls(MAX_CALLS);
    if (input.length > MAX_ARGUMENTS) throw this.#failures.tooLarge('arguments of a tool call', MAX_ARGUMENTS);
    const isNew = toolCallId !== '' && !this.#calls.has(toolCallId);
    const id = isNew ? toolCallId : `call_${this.#ids.base62(24)}`;
    this.#calls.add(id);
    this.#parts.push({ type: 'call', id });
    const options = providerMetadata === undefined ? {} : { options: stored(providerMetadata) };
    const extra: CallData = { of: this.#fingerprint, id, ...options };
    return { type: 'tool-call', id, name: toolName, arguments: input, extra };
  }

  #finish({
    finishReason: { unified, raw },
    usage,
    providerMetadata,
  }: Extract<LanguageModelV4StreamPart, { type: 'finish' }>): ModelEvent[] {
    const reason = REASONS[unified];
    if (reason === undefined) throw this.#failures.unfinished(unified, raw);
    const hasCalls = this.#calls.size > 0;
    const hasText = this.#parts.some(({ type }) => type === 'text');
    if (reason === 'tool_calls' && !hasCalls && !hasText) throw this.#failures.missingCalls();
    const ended = reason === 'stop' || reason === 'tool_calls' ? (hasCalls ? 'tool_calls' : 'stop') : reason;
    const counts = usageOf(usage);
    return [
      ...(counts ? [{ type: 'usage', usage: counts } as const] : []),
      {
        type: 'end',
        reason: ended,
        ...stopSequenceOf(providerMetadata),
        ...(raw !== undefined && raw !== ended && { rawReason: raw }),
        extra: this.#messageData(),
      },
    ];
  }

  /** Nothing if the text and the calls are the whole answer. */
  #messageData(): MessageData | undefined {
    const isPlain = this.#parts.every((part) => part.type === 'call' || (part.type === 'text' && part.options === undefined));
    const texts = this.#parts.filter(({ type }) => type === 'text').length;
    if (isPlain && texts < 2) return undefined;
    return { of: this.#fingerprint, parts: this.#parts };
  }
}

function kindOf({ type }: { readonly type: string }): 'text' | 'reasoning' {
  return type.startsWith('text') ? 'text' : 'reasoning';
}

/** The stop sequence that ended the text, which Anthropic names. */
function stopSequenceOf(metadata: PartOptions | undefined): { readonly stopSequence?: string } {
  const { stopSequence } = metadata?.anthropic ?? {};
  return typeof stopSequence === 'string' ? { stopSequence } : {};
}

/** Later values of a provider replace earlier ones by name. */
function merged(options: PartOptions | undefined, added: PartOptions | undefined): PartOptions | undefined {
  if (options === undefined || added === undefined) return added ?? options;
  const result = { ...options };
  for (const [provider, values] of Object.entries(added)) result[provider] = { ...result[provider], ...values };
  return result;
}

/** Token counts in whole numbers; undefined if the provider counted nothing (AI-5). */
function usageOf({ inputTokens, outputTokens, raw }: LanguageModelV4Usage): Usage | undefined {
  if (inputTokens.total === undefined && outputTokens.total === undefined) return undefined;
  return {
    promptTokens: count(inputTokens.total),
    completionTokens: count(outputTokens.total),
    cachedTokens: count(inputTokens.cacheRead),
    cacheWriteTokens: count(inputTokens.cacheWrite),
    reasoningTokens: count(outputTokens.reasoning ?? reasoningOf(raw)),
  };
}

/** The tokens of thoughts in the counts of Mistral, which its package leaves out. */
function reasoningOf(raw: LanguageModelV4Usage['raw']): number | undefined {
  const details = raw?.completion_tokens_details;
  const tokens = isObject(details) ? details.reasoning_tokens : undefined;
  return typeof tokens === 'number' ? tokens : undefined;
}

function count(tokens: number | undefined): number {
  return Number.isSafeInteger(tokens) && Number(tokens) > 0 ? Number(tokens) : 0;
}
