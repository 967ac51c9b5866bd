import { type ModelConnector, ModelError, type ModelEvent, type ModelRequest } from '@plugboard/kernel';
import { NO_USAGE, textOf } from '@plugboard/kernel/contracts';
import type { StarterConfig } from './config.ts';

/**
 * One line of the server's answer: `{"text":"…"}`, and at the end
 * `{"end":{"read":12,"written":34}}`.
 */
interface Line {
  readonly text?: string;
  readonly end?: { readonly read: number; readonly written: number };
}

/** Characters of the longest line: a server that never ends one must not fill the memory. */
const LONGEST_LINE = 1_000_000;

/** Connects to a model server that streams lines of JSON. */
export class StarterModel implements ModelConnector {
  readonly model: string;
  readonly contextWindow: number;
  readonly input = ['text'] as const;
  readonly #url: string;

  constructor({ url, model, contextWindow }: StarterConfig) {
    this.#url = url;
    this.model = model;
    this.contextWindow = contextWindow;
  }

  supportsParam(param: string): boolean {
    return param === 'temperature';
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
    try {
      yield* this.#ask(request, signal);
    } catch (error) {
      if (signal.aborted || error instanceof ModelError) throw error;
      throw new ModelError('it cannot be reached, or the connection broke.', { retryable: true, cause: error });
    }
  }

  async *#ask(request: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
    const messages = request.messages.map(({ role, content }) => ({ role, text: textOf(content) }));
    const response = await fetch(this.#url, {
      method: 'POST',
      headers: { ...request.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ model: this.model, messages, ...request.params }),
      signal,
    });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      const { status } = response;
      const code = status === 429 ? 'rate_limited' : undefined;
      throw new ModelError(`it answered with status ${status}.`, { code, retryable: code !== undefined || status >= 500 });
    }
    let rest = '';
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > LONGEST_LINE) {
        throw new ModelError(`it sent a line of more than ${LONGEST_LINE} characters.`);
      }
      const events = lines.flatMap((line) => eventsOf(parse(line)));
      if (events.length > 0) yield events;
    }
  }
}

function parse(line: string): Line {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new ModelError('it sent a line that is not JSON.', { cause: error });
  }
}

function eventsOf({ text, end }: Line): ModelEvent[] {
  if (end === undefined) return [{ type: 'text', text: text ?? '' }];
  const usage = { ...NO_USAGE, promptTokens: end.read, completionTokens: end.written };
  return [
    { type: 'usage', usage },
    { type: 'end', reason: 'stop' },
  ];
}
