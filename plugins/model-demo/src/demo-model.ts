import {
  type Clock,
  type IdSource,
  type ModelConnector,
  type ModelEvent,
  type ModelRequest,
  parseDuration,
} from '@plugboard/kernel';
import { NO_USAGE, textOf, type Usage } from '@plugboard/kernel/contracts';
import { chooseCalls } from './choose-calls.js';
import type { DemoConfig } from './config.js';
import { lastPrompt, toolResults } from './conversation.js';
import { introduction, report } from './reply.js';

/** The sampling parameters that have an effect. */
const PARAMS: readonly string[] = ['max_tokens', 'max_completion_tokens', 'tool_choice'];

/**
 * Answers without a model server. The same conversation always gets the same answer: a tool call if
 * the last user message names a tool, the tool results if there are any, else an introduction.
 */
export class DemoModel implements ModelConnector {
  readonly model = 'demo';
  readonly provider = 'plugboard';
  readonly contextWindow = 128_000;
  readonly input = ['text'] as const;
  readonly #pace: number;
  readonly #clock: Clock;
  readonly #ids: IdSource;

  constructor(config: DemoConfig, clock: Clock, ids: IdSource) {
    this.#pace = parseDuration(config.pace);
    this.#clock = clock;
    this.#ids = ids;
  }

  supportsParam(param: string): boolean {
    return PARAMS.includes(param);
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
    signal.throwIfAborted();
    const results = toolResults(request.messages);
    const calls = results.length > 0 ? [] : chooseCalls(lastPrompt(request.messages), request.tools, request.params.tool_choice);
    if (calls.length > 0) {
      const events = calls.map((call) => ({
        type: 'tool-call' as const,
        id: `call_${this.#ids.base62(24)}`,
        name: call.name,
        arguments: JSON.stringify(call.arguments),
      }));
      yield events;
      yield ending(
        'tool_calls',
        request,
        events.map((event) => event.arguments),
      );
      return;
    }

    const words = wordsOf(results.length > 0 ? report(results) : introduction(request.messages, request.tools));
    const spoken = words.slice(0, wordLimit(request.params));
    if (request.incremental) {
      for (const word of spoken) {
        await this.#wait(signal);
        yield [{ type: 'text', text: word }];
      }
    } else {
      yield [{ type: 'text', text: spoken.join('') }];
    }
    yield ending(spoken.length < words.length ? 'length' : 'stop', request, spoken);
  }

  /** @throws the signal's reason as soon as it is aborted. */
  async #wait(signal: AbortSignal): Promise<void> {
    if (this.#pace > 0) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          timer.cancel();
          signal.removeEventListener('abort', done);
          resolve();
        };
        const timer = this.#clock.after(this.#pace, done);
        signal.addEventListener('abort', done);
      });
    }
    signal.throwIfAborted();
  }
}

/** Splits a text into words, each with the white space after it. */
function wordsOf(text: string): readonly string[] {
  return text.match(/\S+\s*/g) ?? [];
}

/** The limit on words: a word counts as a token. */
function wordLimit({ max_completion_tokens: newer, max_tokens: older }: ModelRequest['params']): number {
  const limit = newer ?? older;
  return typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY;
}

function ending(
  reason: 'stop' | 'length' | 'tool_calls',
  request: ModelRequest,
  spoken: readonly string[],
): readonly ModelEvent[] {
  return [
    { type: 'usage', usage: estimate(request, spoken) },
    { type: 'end', reason },
  ];
}

/** Counts words instead of tokens. */
function estimate({ messages, tools }: ModelRequest, spoken: readonly string[]): Usage {
  const prompt = [...messages.map((message) => textOf(message.content)), ...tools.map((tool) => JSON.stringify(tool))];
  return { ...NO_USAGE, promptTokens: countWords(prompt), completionTokens: countWords(spoken) };
}

/** Counts without building a list: a conversation may be long. */
function countWords(texts: readonly string[]): number {
  let count = 0;
  for (const text of texts) for (const _ of text.matchAll(/\S+/g)) count += 1;
  return count;
}
