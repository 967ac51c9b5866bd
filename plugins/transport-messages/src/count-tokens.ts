import type { Extensions } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { estimateTokens, ignoredParamsHeader } from '@plugboard/turn-routes';
import { formatError, requestIdHeader } from './errors/format-error.js';
import { conversationOf } from './request/conversation.js';
import { Ignored } from './request/ignored.js';
import { headOf } from './request/request.js';
import { targetOf } from './request/target.js';
import { toolsOf } from './request/tools.js';

/**
 * `POST /v1/messages/count_tokens`: an estimate of what the caller sends. The agent's own prompt
 * and tools are not counted, and no model server is asked.
 */
export class CountTokens implements HttpRoute {
  readonly method = 'POST';
  readonly path = '/v1/messages/count_tokens';
  readonly access = ['chat'] as const;
  readonly tokenHeader = 'x-api-key';
  readonly body = 'json';
  readonly startsWork = false;
  readonly formatError = formatError;

  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(runtimes: Extensions<AgentRuntime>) {
    this.#runtimes = runtimes;
  }

  /** @throws MessagesError for a request that could not be answered either. */
  handle({ body, principal, requestId }: HttpRequest): HttpReply {
    const { fields, model } = headOf(body);
    const target = targetOf(this.#runtimes.one(), model, principal);
    const ignored = new Ignored();
    const { messages } = conversationOf(fields.system, fields.messages, { target, hasSession: true, ignored });
    const { declarations } = toolsOf(fields, target, ignored);
    return {
      status: 200,
      headers: { ...requestIdHeader(requestId), ...ignoredParamsHeader(ignored.names) },
      body: { input_tokens: estimateTokens(messages, declarations) },
    };
  }
}
