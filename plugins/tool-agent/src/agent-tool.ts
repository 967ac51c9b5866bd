import { defineTool, type Extensions, type Tool, type ToolCall, type ToolOutput, type ToolSource } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { answerOf, failure } from './answer.js';
import { type AgentToolConfig, DEFAULT_DEPTH } from './config.js';

/** Offers one tool, which asks an agent: each call is a turn of it inside of the call's turn. */
export class AgentTool implements ToolSource {
  readonly single = true;
  /** Longer than any turn: the `timeout` of the agent counts, and that of the turn above. */
  readonly timeout = '24d';
  readonly asks: NonNullable<ToolSource['asks']>;
  readonly #name: string;
  readonly #config: AgentToolConfig;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #tool: Tool;

  /** @param name the key of the entry. */
  constructor(name: string, config: AgentToolConfig, runtimes: Extensions<AgentRuntime>) {
    const { agent, description, depth, maxChildren } = config;
    this.asks = { agent, depth: depth ?? DEFAULT_DEPTH, setsDepth: depth !== undefined, maxChildren };
    this.#name = name;
    this.#config = config;
    this.#runtimes = runtimes;
    this.#tool = defineTool({
      name,
      description,
      inputSchema: {
        type: 'object',
        properties: {
          input: {
            type: 'string',
            minLength: 1,
            description: 'What to ask or to do, with all that the agent must know: it does not see this conversation.',
          },
        },
        required: ['input'],
        additionalProperties: false,
      },
      run: ({ input }, call) => this.#ask(input, call),
    });
  }

  tools(): readonly Tool[] {
    return [this.#tool];
  }

  async #ask(input: string, call: ToolCall): Promise<ToolOutput> {
    const { agent, session } = this.#config;
    const { principal, requestId, metadata, signal } = call;
    const runtime = this.#runtimes.one();
    const resolution = runtime.resolve(agent, principal);
    if (resolution.kind !== 'target') return failure(`The caller may not use the agent "${agent}".`);
    const request = {
      target: resolution.target,
      parent: call,
      principal,
      requestId,
      metadata,
      signal,
      messages: [{ role: 'user' as const, content: input }],
      clientTools: [],
      params: {},
      incremental: true,
    };
    const turn = runtime.run(session === 'parent' ? { ...request, session: { key: this.#name } } : request);
    return answerOf(agent, turn);
  }
}
