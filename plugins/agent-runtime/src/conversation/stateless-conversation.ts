import type { Message, Turn } from '@plugboard/kernel';
import type { TurnContext } from '../lifecycle/turn-context.js';
import { type BegunTurn, makeTurn, type TurnConversation } from './conversation.js';
import { MixedCalls } from './mixed-calls.js';

/** A conversation that the caller keeps and sends with each request. */
export class StatelessConversation implements TurnConversation {
  readonly #context: TurnContext;
  /** Present if one step may call both client tools and tools of the agent. */
  readonly #mixedCalls: MixedCalls | undefined;
  /** The conversation before the turn. */
  #messages: readonly Message[];

  constructor(context: TurnContext) {
    const { agent, request, deps } = context;
    this.#context = context;
    this.#messages = request.messages;
    if (agent.tools.length > 0 && agent.clientTools === 'passthrough')
      this.#mixedCalls = new MixedCalls(deps.stores.one(), agent.name, request.principal);
  }

  get isStored(): boolean {
    return this.#mixedCalls !== undefined;
  }

  async load(): Promise<Turn> {
    const mixed = this.#mixedCalls;
    const { storeCall } = this.#context.deps;
    if (mixed) this.#messages = await storeCall(() => mixed.expand(this.#messages), 'pendingToolCalls.load');
    return makeTurn(this.#context, this.#messages);
  }

  async begin(turn: Turn): Promise<BegunTurn> {
    return { turn, usage: undefined };
  }

  async commit(answer: readonly Message[]): Promise<void> {
    const mixed = this.#mixedCalls;
    const { run, deps } = this.#context;
    if (mixed) await deps.storeCall(() => mixed.save(this.#messages, answer), 'pendingToolCalls.save');
    await run.idempotent?.store();
  }

  async abandon(): Promise<void> {}
}
