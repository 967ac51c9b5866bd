import type { Clock, Extensions, IdSource } from '@plugboard/kernel';
import { type AgentRuntime, isBlankKey, type Target } from '@plugboard/kernel/contracts';
import { claimError, formatError, invalidValue, resolveAgent, turnFailureError } from '@plugboard/openai-protocol';
import type { HttpRequest } from '@plugboard/transport-http';
import { type Dialect, type DialectTurn, ignoredParamsHeader } from '@plugboard/turn-routes';
import { completionForm } from './answer/completion-form.js';
import { requireStreamEncoder, type StreamEncoder } from './answer/stream-encoder.js';
import type { ChatCompletionsConfig } from './config.js';
import { clientToolsOf } from './request/client-tools.js';
import { assertText, conversationOf } from './request/messages.js';
import { effectiveSources, parseSession } from './request/named-session.js';
import { parametersOf } from './request/parameters.js';
import { parseRequest } from './request/validate.js';

interface ChatCompletionsDependencies {
  readonly config: ChatCompletionsConfig;
  readonly encoders: Extensions<StreamEncoder>;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** The dialect of `POST /v1/chat/completions`. */
export class ChatCompletions implements Dialect {
  readonly path = '/v1/chat/completions';
  readonly formatError = formatError;
  readonly invalid = invalidValue;
  readonly errorOf = turnFailureError;
  readonly claimError = claimError;

  readonly #config: ChatCompletionsConfig;
  readonly #encoders: Extensions<StreamEncoder>;
  readonly #clock: Clock;
  readonly #ids: IdSource;

  constructor({ config, encoders, clock, ids }: ChatCompletionsDependencies) {
    this.#config = config;
    this.#encoders = encoders;
    this.#clock = clock;
    this.#ids = ids;
  }

  /** @throws ProtocolError for an invalid request. */
  read(request: HttpRequest, runtime: AgentRuntime): DialectTurn {
    const body = parseRequest(request.body);
    const session = parseSession(body, request, this.#config.sessionFrom);
    const sources = effectiveSources(session, this.#config.sessionFrom);
    const messages = conversationOf(body.messages);
    const encoder = body.stream ? requireStreamEncoder(this.#encoders) : undefined;

    const target = resolveAgent(runtime, body.model, 'model', request.principal);
    const clientTools = clientToolsOf(body, target);
    const { params, ignored } = parametersOf(body, target, clientTools.length > 0, sources);
    if (!target.input.includes('image')) {
      // Of a session's request, only what follows the last answer is new.
      const from = session ? messages.findLastIndex(({ role }) => role === 'assistant') : 0;
      assertText(messages, target.connection, from);
    }
    const user = isBlankKey(body.user ?? '') ? undefined : body.user;
    return {
      turn: { target, messages, clientTools, params, user, metadata: body.metadata ?? {} },
      session,
      answer: completionForm({
        head: this.#head(body.model, target),
        headers: ignoredParamsHeader(ignored),
        encoder,
        includeUsage: body.stream_options?.include_usage === true,
        isStateful: session !== undefined,
      }),
    };
  }

  #head(model: string, target: Target) {
    return {
      id: `chatcmpl-${this.#ids.base62(29)}`,
      created: Math.floor(this.#clock.now() / 1000),
      model,
      fingerprint: `fp_${target.fingerprint}`,
    };
  }
}
