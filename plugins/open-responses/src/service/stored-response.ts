import type { Message, Principal } from '@plugboard/kernel';
import type { Conversations } from '@plugboard/kernel/contracts';

/** A finished response, stored with its session. */
export interface StoredResponse {
  /** The opaque id of the session. */
  readonly conversation: string;
  readonly agent: string;
  /** The turn of the session that it came of, from 1. */
  readonly turn: number;
  /**
   * Whether the session exists for the sake of this chain of responses, and not because a request
   * named it.
   */
  readonly isChain: boolean;
  /** The response, as JSON. */
  readonly response: string;
}

/** Size of the turns that are read from the store at once, as JSON (bytes), and their number. */
const BYTES_AT_ONCE = 1024 * 1024;
const TURNS_AT_ONCE = 100;

const ID = /^resp_[0-9A-Za-z]{24}$/;
const ITEM_ID = /^(?:msg|mcp|fc|rs)_([0-9A-Za-z]{24})_\d{1,6}$/;

/** Whether a text has the form of a response's id. No store is asked for anything else. */
export function isResponseId(text: string): boolean {
  return ID.test(text);
}

/** The response that an output item belongs to, by the item's id; undefined for anything else. */
export function responseOfItem(id: string): string | undefined {
  const suffix = ITEM_ID.exec(id)?.[1];
  return suffix === undefined ? undefined : `resp_${suffix}`;
}

/** The stored responses of a server. They live as long as their sessions. */
export class StoredResponses {
  readonly #conversations: () => Conversations;

  constructor(conversations: () => Conversations) {
    this.#conversations = conversations;
  }

  /** @throws TurnError */
  async put(
    id: string,
    { conversation, turn, isChain, response }: Omit<StoredResponse, 'agent'>,
    principal: Principal,
  ): Promise<void> {
    // The response is JSON already: its text is inserted unchanged.
    const text = `{"turn":${turn},"chain":${isChain},"response":${response}}`;
    await this.#conversations().putDocument(conversation, id, text, principal);
  }

  /** @throws TurnError */
  async get(id: string, principal: Principal): Promise<StoredResponse | undefined> {
    if (!isResponseId(id)) return undefined;
    const found = await this.#conversations().document(id, principal);
    if (!found) return undefined;
    const [, turn, chain, response] = /^\{"turn":(\d+),"chain":(true|false),"response":(.*)\}$/s.exec(found.text) ?? [];
    if (response === undefined) return undefined;
    const { conversation, agent } = found;
    return { conversation, agent, turn: Number(turn), isChain: chain === 'true', response };
  }

  /**
   * Deletes a response. The session of a chain that holds nothing else goes with it.
   *
   * @returns whether there was one.
   * @throws TurnError
   */
  async delete(id: string, principal: Principal): Promise<boolean> {
    const stored = await this.get(id, principal);
    if (!stored) return false;
    const conversations = this.#conversations();
    const deleted = await conversations.deleteDocument(id, principal);
    if (!stored.isChain || stored.turn > 1) return deleted;
    const { turns, status } = await conversations.get(stored.conversation, principal);
    if (turns === 1 && status === 'idle') await conversations.delete(stored.conversation, principal);
    return deleted;
  }

  /** The conversation up to a response, its own turn included. @throws TurnError */
  async history({ conversation, turn }: StoredResponse, principal: Principal): Promise<readonly Message[]> {
    const messages: Message[] = [];
    for (let after = 0; after < turn; ) {
      const limit = Math.min(TURNS_AT_ONCE, turn - after);
      const page = { order: 'asc', limit, after, maxBytes: BYTES_AT_ONCE } as const;
      const { turns } = await this.#conversations().turns(conversation, page, principal);
      if (turns.length === 0) break;
      for (const one of turns) messages.push(...one.messages);
      after += turns.length;
    }
    return messages;
  }
}
