import { AgentRuntimes, type Extensions, type PluginContext } from '@plugboard/kernel';
import { type AgentRuntime, conversationId } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { Plan } from './response-plan.js';

/** The session that a response runs in. */
export interface ResponseSession {
  readonly key: string;
  /** The opaque id. */
  readonly conversation: string;
  /** Whether the session exists for this chain of responses, and was not named by a request. */
  readonly isChain: boolean;
  /** Whether it was copied for this response. */
  readonly isCopy: boolean;
  /** The turns of responses that run or wait in it before this one. */
  readonly ahead: number;
}

/**
 * Finds the session of each response. Continuing the newest response of a chain adds a turn to its
 * session, and so does deciding about calls that wait in a session. Continuing an older one, or one
 * whose continuation already runs, copies the session up to it: a separate branch.
 */
export class ResponseSessions {
  readonly #runtimes: Extensions<AgentRuntime>;
  /** Turns that run or wait, by the opaque id of their session. */
  readonly #turns = new Map<string, number>();

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#runtimes = extensions(AgentRuntimes);
  }

  /**
   * The session of a response, in which a turn then runs or waits until `end`; undefined if it has
   * none.
   *
   * @throws TurnError
   */
  async begin({ base, head, turn: { target, principal, approvals = [] } }: Plan): Promise<ResponseSession | undefined> {
    const begin = (key: string, { isChain = true, isCopy = false } = {}): ResponseSession => {
      const conversation = conversationId({ project: principal.project, agent: target.name, key });
      const ahead = this.#turns.get(conversation) ?? 0;
      this.#turns.set(conversation, ahead + 1);
      return { key, conversation, isChain, isCopy, ahead };
    };
    switch (base.kind) {
      case 'stateless':
        return undefined;
      case 'session':
        return begin(base.key, { isChain: false });
      case 'chain':
        return begin(head.id);
      case 'stored': {
        const { conversation, turn, isChain } = base.previous;
        const { conversations } = this.#runtimes.one();
        const { id, turns, status } = await conversations.get(conversation, principal);
        // What waits in a session is decided in it: a copy cannot run its calls.
        if (approvals.length > 0 && turns === turn) return begin(id.key, { isChain });
        if (isChain && turns === turn && status === 'idle' && !this.#turns.has(conversation)) return begin(id.key);
        await conversations.fork(conversation, { key: head.id, turns: turn }, principal);
        return begin(head.id, { isCopy: true });
      }
    }
  }

  /** The turn of a response has ended. */
  end({ conversation }: ResponseSession): void {
    const left = (this.#turns.get(conversation) ?? 1) - 1;
    if (left > 0) this.#turns.set(conversation, left);
    else this.#turns.delete(conversation);
  }
}
