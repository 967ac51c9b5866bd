import { AgentRuntimes, type Extensions, type Message, type PluginContext } from '@plugboard/kernel';
import { type AgentRuntime, type Target, TurnError, type TurnRequest, type Usage } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { resolveAgent } from '@plugboard/openai-protocol';
import { usageJson } from '../events/response-object.js';
import type { ResponseRequest } from '../request/request.js';
import { SummaryText } from './compaction.js';
import { previousNotCommitted, previousNotFound } from './response-errors.js';
import type { InputCaller } from './response-plan.js';
import { ResponsePlanner } from './response-planner.js';
import { StoredResponses } from './stored-responses.js';
import { SummaryTokens } from './summary-tokens.js';

/** What `POST /v1/responses/compact` returns. */
export interface CompactedConversation {
  readonly id: string;
  readonly object: 'response.compaction';
  readonly created_at: number;
  readonly output: readonly object[];
  readonly usage: object;
}

/** The caller of a summary. */
export type SummaryCaller = Pick<TurnRequest, 'requestId' | 'transport' | 'signal'> & InputCaller;

/** Replaces conversations by summaries. */
export class Compactor {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #planner: ResponsePlanner;
  readonly #stored: StoredResponses;
  readonly #summaries: SummaryTokens;

  constructor(
    @inject(CONTEXT) { extensions }: PluginContext,
    @inject(ResponsePlanner) planner: ResponsePlanner,
    @inject(StoredResponses) stored: StoredResponses,
    @inject(SummaryTokens) summaries: SummaryTokens,
  ) {
    this.#runtimes = extensions(AgentRuntimes);
    this.#planner = planner;
    this.#stored = stored;
    this.#summaries = summaries;
  }

  /** @throws ProtocolError for a request that cannot be served. @throws TurnError */
  async compact(request: ResponseRequest, caller: SummaryCaller): Promise<CompactedConversation> {
    const target = resolveAgent(this.#runtimes.one(), request.model ?? '', 'model', caller.principal);
    const { messages } = await this.#planner.inputOf(request, target, caller);
    const history = await this.#historyOf(request, target, caller);
    const { text, usage } = await this.#summarize([...history, ...messages], target, caller);
    const id = this.#planner.newId();
    const item = {
      id: id.replace('resp_', 'cmp_'),
      type: 'compaction',
      encrypted_content: await this.#summaries.seal(text, caller.principal.project),
    };
    return {
      id,
      object: 'response.compaction',
      created_at: this.#planner.now(),
      output: [item],
      usage: JSON.parse(usageJson(usage)),
    };
  }

  /** The conversation up to the previous response, as far as the caller may see it. */
  async #historyOf(request: ResponseRequest, target: Target, { principal, account }: SummaryCaller): Promise<readonly Message[]> {
    const { previous_response_id: previous } = request;
    if (previous === undefined) return [];
    const found = await this.#stored.locate(previous, principal, account);
    if (!found || found.agent !== target.name) throw previousNotFound(previous);
    if (found.turn === 0) throw previousNotCommitted(previous);
    return this.#stored.visibleHistory(found, principal, account);
  }

  async #summarize(
    messages: readonly Message[],
    target: Target,
    { principal, account, requestId, transport, signal }: SummaryCaller,
  ): Promise<{ readonly text: string; readonly usage: Usage }> {
    const events = this.#runtimes.one().run({
      principal,
      account,
      requestId,
      transport,
      signal,
      target,
      messages,
      summarize: true,
      clientTools: [],
      params: {},
      incremental: false,
      metadata: {},
    });
    const summary = new SummaryText();
    for await (const batch of events) {
      for (const event of batch) {
        summary.add(event);
        if (event.type === 'failed') {
          const { code, message, retryAfter } = event.failure;
          throw new TurnError(code, message, { retryAfter });
        }
        if (event.type === 'finished') return { text: summary.finish(), usage: event.usage };
      }
    }
    throw new TurnError('crashed', 'The summary was not finished.');
  }
}
