import type { Principal } from '@plugboard/kernel';
import { type AgentRuntime, conversationId, TurnError } from '@plugboard/kernel/contracts';
import type { LiveSession } from '../live/live-response.js';
import type { ResponseRequest } from '../request/request.js';
import type { Plan } from './response-plan.js';

/** The session that a response runs in. */
export class SessionPlace {
  readonly key: string;
  /** The opaque id. */
  readonly conversation: string;
  /** Whether the session exists for this chain of responses, and was not named by a request. */
  readonly isChain: boolean;
  readonly #nextTurn: () => Promise<number>;
  #turn: Promise<number> | undefined;

  constructor(key: string, conversation: string, isChain: boolean, nextTurn: () => Promise<number>) {
    this.key = key;
    this.conversation = conversation;
    this.isChain = isChain;
    this.#nextTurn = nextTurn;
  }

  /** The number of the response's turn. Must first be called while the turn runs. */
  turn(): Promise<number> {
    this.#turn ??= this.#nextTurn();
    return this.#turn;
  }
}

/**
 * Finds the session for each response. Continuing the newest response of a chain adds a turn to its
 * session; continuing an older one, or one whose continuation already runs, copies the session up
 * to it: a separate branch.
 */
export class SessionPlaces {
  readonly #runtime: () => AgentRuntime;
  /** Sessions of chains in which a turn runs, by their opaque ids. */
  readonly #busyChains = new Set<string>();
  /** Turns that run or wait, by the opaque id of their session. */
  readonly #running = new Map<string, number>();

  constructor(runtime: () => AgentRuntime) {
    this.#runtime = runtime;
  }

  /** The session for a response; undefined for one without. @throws TurnError */
  async find({ base, head, turn: { target, principal } }: Plan): Promise<SessionPlace | undefined> {
    const place = (key: string, isChain: boolean, turn?: number): SessionPlace => {
      const conversation = conversationId({ project: principal.project, agent: target.name, key });
      const known = turn === undefined ? undefined : Promise.resolve(turn);
      return new SessionPlace(key, conversation, isChain, () => known ?? this.#nextTurn(conversation, principal));
    };
    switch (base.kind) {
      case 'stateless':
        return undefined;
      case 'session':
        return place(base.key, false);
      case 'chain':
        return place(head.id, true, 1);
      case 'stored': {
        const { conversation, turn, isChain } = base.previous;
        const { conversations } = this.#runtime();
        const { id, turns, status } = await conversations.get(conversation, principal);
        const isNewest = isChain && turns === turn && status === 'idle';
        if (isNewest && !this.#busyChains.has(conversation)) {
          this.#busyChains.add(conversation);
          return place(id.key, true, turn + 1);
        }
        await conversations.fork(conversation, { key: head.id, turns: turn }, principal);
        return place(head.id, true, turn + 1);
      }
    }
  }

  /** A turn of the session runs or waits. */
  begin({ conversation }: SessionPlace): void {
    this.#running.set(conversation, (this.#running.get(conversation) ?? 0) + 1);
  }

  /** That turn has ended. */
  end({ conversation }: SessionPlace): void {
    this.#busyChains.delete(conversation);
    const left = (this.#running.get(conversation) ?? 1) - 1;
    if (left > 0) this.#running.set(conversation, left);
    else this.#running.delete(conversation);
  }

  /** The session as `svc:` events show it. */
  shown({ conversation }: ResponseRequest, place: SessionPlace): LiveSession {
    const name = (typeof conversation === 'object' ? conversation.id : conversation) ?? place.conversation;
    return { name, ahead: this.#running.get(place.conversation) ?? 0, turn: () => place.turn() };
  }

  /** The number of the turn that runs now in a session: one more than are stored. */
  async #nextTurn(conversation: string, principal: Principal): Promise<number> {
    try {
      const { turns } = await this.#runtime().conversations.get(conversation, principal);
      return turns + 1;
    } catch (error) {
      if (error instanceof TurnError && error.code === 'conversation_not_found') return 1;
      throw error;
    }
  }
}
