import { AgentRuntimes, type Extensions, type PluginContext } from '@plugboard/kernel';
import { type AgentRuntime, conversationId } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { Plan } from './response-plan.js';
import type { ResponseSession } from './response-session.js';

/**
 * Finds the session of each response. Continuing the newest response of a chain adds a turn to its
 * session, and so does deciding about calls that wait in a session. Continuing an older one, or one
 * whose continuation already runs, copies the session up to it: a separate branch.
 */
export class ResponseSessions {
  readonly #runtimes: Extensions<AgentRuntime>;
  /** Chains in which a turn runs, by the opaque ids of their sessions. */
  readonly #busyChains = new Set<string>();
  /** Turns that run or wait, by the opaque id of their session. */
  readonly #turns = new Map<string, number>();

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#runtimes = extensions(AgentRuntimes);
  }

  /** The session of a response; undefined if it has none. @throws TurnError */
  async find({ base, head, turn: { target, principal, approvals = [] } }: Plan): Promise<ResponseSession | undefined> {
    const session = (key: string, { isChain = true, isCopy = false } = {}): ResponseSession => {
      const conversation = conversationId({ project: principal.project, agent: target.name, key });
      return { key, conversation, isChain, isCopy };
    };
    switch (base.kind) {
      case 'stateless':
        return undefined;
      case 'session':
        return session(base.key, { isChain: false });
      case 'chain':
        return session(head.id);
      case 'stored': {
        const { conversation, turn, isChain } = base.previous;
        const { conversations } = this.#runtimes.one();
        const { id, turns, status } = await conversations.get(conversation, principal);
        // What waits in a session is decided in it: a copy cannot run its calls.
        if (approvals.length > 0 && turns === turn) return session(id.key, { isChain });
        const isNewest = isChain && turns === turn && status === 'idle';
        if (isNewest && !this.#busyChains.has(conversation)) {
          this.#busyChains.add(conversation);
          return session(id.key);
        }
        await conversations.fork(conversation, { key: head.id, turns: turn }, principal);
        return session(head.id, { isCopy: true });
      }
    }
  }

  /** A turn of the session runs or waits. */
  begin(session: ResponseSession): void {
    this.#turns.set(session.conversation, this.ahead(session) + 1);
  }

  /** That turn has ended. */
  end(session: ResponseSession): void {
    const { conversation } = session;
    this.#busyChains.delete(conversation);
    const left = this.ahead(session) - 1;
    if (left > 0) this.#turns.set(conversation, left);
    else this.#turns.delete(conversation);
  }

  /** Turns of a session that run or wait. */
  ahead({ conversation }: ResponseSession): number {
    return this.#turns.get(conversation) ?? 0;
  }
}
