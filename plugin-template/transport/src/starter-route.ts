import type { Extensions } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { HttpError, type HttpReply, type HttpRequest, type HttpRoute } from '@plugboard/transport-http';
import type { StarterConfig } from './config.ts';

/**
 * Runs one turn for `POST /v1/ask` with `{"agent":"…","text":"…"}` and answers with the agent's
 * text.
 */
export class StarterRoute implements HttpRoute {
  readonly method = 'POST';
  readonly path: string;
  readonly access = ['chat'] as const;
  readonly body = 'json';
  readonly startsWork = true;
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor({ path }: StarterConfig, runtimes: Extensions<AgentRuntime>) {
    this.path = path;
    this.#runtimes = runtimes;
  }

  async handle({ body, principal, account, requestId, signal }: HttpRequest): Promise<HttpReply> {
    const { agent, text } = body as Readonly<Record<string, unknown>>;
    if (typeof agent !== 'string') throw new HttpError(400, '`agent` must be the name of an agent.');
    if (typeof text !== 'string') throw new HttpError(400, '`text` must be a string.');
    const runtime = this.#runtimes.one();
    const resolved = runtime.resolve(agent, principal);
    if (resolved.kind !== 'target') throw new HttpError(404, 'No agent that you may use has this name.');
    const events = runtime.run({
      target: resolved.target,
      principal,
      account,
      messages: [{ role: 'user', content: text }],
      clientTools: [],
      params: {},
      incremental: false,
      requestId,
      metadata: {},
      signal,
    });
    let answer = '';
    for await (const batch of events) {
      for (const event of batch) {
        if (event.type === 'step') answer = ''; // text before a tool call is not the answer
        if (event.type === 'text') answer += event.text;
        if (event.type === 'failed') throw new HttpError(502, event.failure.message, { code: event.failure.code });
      }
    }
    return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: answer };
  }
}
