import { AgentRuntimes, type Extensions, type Message, type PluginContext, type Principal } from '@plugboard/kernel';
import { Account, type AgentRuntime, type Conversations, type Target, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { InputItem } from '../request/request.js';
import { addedTo, type Carried, isNothing, joinCarried, NOTHING_CARRIED } from './carried.js';
import type { ToolView } from './visible-messages.js';

/** A response that has ended, stored with its session. */
interface StoredResponse {
  /** The opaque id of the session. */
  readonly conversation: string;
  readonly agent: string;
  /** The number of its turn in the session, from 1; 0 if it failed or was cancelled. */
  readonly turn: number;
  /**
   * Whether the session exists for the sake of this chain of responses, and not because a request
   * named it.
   */
  readonly isChain: boolean;
  /** The items of the request. */
  readonly input: readonly InputItem[];
  /** The response, as JSON. */
  readonly response: string;
  /** What it carries besides its parts. */
  readonly carried: Carried;
  /** The names of the parts of what it carries. */
  readonly parts: readonly string[];
  /** What was reserved for it. */
  readonly memory: number;
}

/** The place of a response in its session. */
export type LocatedResponse = Pick<StoredResponse, 'conversation' | 'agent' | 'turn' | 'isChain' | 'carried'>;

/** What the store keeps of a response. */
interface ResponseDocument {
  readonly turn: number;
  readonly chain: boolean;
  readonly input: readonly InputItem[];
  readonly carried?: Carried;
  readonly parts?: readonly string[];
  readonly response: object;
}

/** Bytes of turns, as JSON, that are read from the store at once. */
const MAX_BYTES = 1024 * 1024;
/** Their number. */
const MAX_TURNS = 100;

const ID = /^resp_[0-9A-Za-z]{24}$/;
/** Of any kind: what a response said, or its request. */
const ITEM_ID = /^[a-z]{1,8}_([0-9A-Za-z]{24})_(?:in)?\d{1,6}$/;

/** The document of what a response adds to what it carries. */
function partNameOf(id: string): string {
  return `carried_${id.slice('resp_'.length)}`;
}

/** Whether a text has the form of a response's id. No store is asked for anything else. */
export function isResponseId(text: string): boolean {
  return ID.test(text);
}

/** The response that an item belongs to, by the item's id; undefined for anything else. */
export function responseOfItem(id: string): string | undefined {
  const suffix = ITEM_ID.exec(id)?.[1];
  return suffix === undefined ? undefined : `resp_${suffix}`;
}

/** The stored responses of a server. They live as long as their sessions. */
export class StoredResponses {
  readonly #runtimes: Extensions<AgentRuntime>;
  /** Sessions of chains whose last response was deleted while a turn ran, by their opaque ids. */
  readonly #emptied = new Set<string>();

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#runtimes = extensions(AgentRuntimes);
  }

  /**
   * Stores a response with its session. A session of its own is created for one whose session does
   * not exist, because its first turn failed. What it carries is stored once for all that continue
   * it (S-70); one that failed is never continued.
   *
   * @throws TurnError
   */
  async put(
    id: string,
    { turn, response, input, carried }: Pick<StoredResponse, 'turn' | 'response' | 'input' | 'carried'>,
    { conversation, isChain }: Pick<StoredResponse, 'conversation' | 'isChain'>,
    target: Target,
    principal: Principal,
  ): Promise<void> {
    const { names, text: added, isPart } = addedTo(conversation, turn > 0 ? carried : NOTHING_CARRIED);
    const part = isPart ? [partNameOf(id)] : [];
    const parts = [...names, ...part];
    // The texts are JSON already, and inserted unchanged.
    const own = added === undefined || isPart ? '' : `"carried":${added},`;
    const more = parts.length === 0 ? own : `${own}"parts":${JSON.stringify(parts)},`;
    const text = (chain: boolean) =>
      `{"turn":${turn},"chain":${chain},"input":${JSON.stringify(input)},${more}"response":${response}}`;
    try {
      for (const name of part) await this.#conversations.putDocument(conversation, name, added ?? '', principal);
      await this.#conversations.putDocument(conversation, id, text(isChain), principal);
    } catch (error) {
      if (!(error instanceof TurnError) || error.code !== 'conversation_not_found' || turn > 0) throw error;
      const own = await this.#conversations.create(target, { key: id, metadata: {}, messages: [] }, principal);
      await this.#conversations.putDocument(own.conversation, id, text(true), principal);
    }
  }

  /** @param account in which its memory is reserved. @throws TurnError */
  async get(id: string, principal: Principal, account: Account): Promise<StoredResponse | undefined> {
    if (!isResponseId(id)) return undefined;
    const before = account.reserved;
    const found = await this.#conversations.document(id, principal, account);
    if (!found) return undefined;
    const { conversation, agent, text } = found;
    const memory = account.reserved - before;
    const { turn, chain: isChain, response, input, carried = NOTHING_CARRIED, parts = [] } = JSON.parse(text) as ResponseDocument;
    return { conversation, agent, turn, isChain, response: JSON.stringify(response), input, carried, parts, memory };
  }

  /** The place of a response. What it carries stays reserved. @throws TurnError */
  async locate(id: string, principal: Principal, account: Account): Promise<LocatedResponse | undefined> {
    const found = await this.get(id, principal, account);
    if (!found) return undefined;
    const { conversation, agent, turn, isChain, carried, memory } = found;
    const kept = isNothing(carried) ? 0 : Account.costOf(Buffer.byteLength(JSON.stringify(carried)));
    account.release(memory - Math.min(memory, kept));
    const parts = await this.#parts(found.parts, principal, account);
    return parts && { conversation, agent, turn, isChain, carried: joinCarried(conversation, parts, carried) };
  }

  /** Undefined if one of them is gone: the session has expired meanwhile. */
  async #parts(
    names: readonly string[],
    principal: Principal,
    account: Account,
  ): Promise<ReadonlyMap<string, Carried> | undefined> {
    const parts = new Map<string, Carried>();
    for (const name of names) {
      const found = await this.#conversations.document(name, principal, account);
      if (!found) return undefined;
      parts.set(name, JSON.parse(found.text) as Carried);
    }
    return parts;
  }

  /**
   * Deletes a response. The session of its chain is deleted with the last response that is kept
   * with it, unless a turn of it runs.
   *
   * @returns whether there was one.
   * @throws TurnError
   */
  async delete(id: string, principal: Principal, account: Account): Promise<boolean> {
    const stored = await this.get(id, principal, account);
    account.release(stored?.memory ?? 0);
    const left = stored && (await this.#conversations.deleteDocument(id, principal, account));
    if (!stored || left === undefined) return false;
    if (stored.isChain && left === 0) await this.#deleteEmpty(stored.conversation, principal, account);
    return true;
  }

  /**
   * A turn of a session has ended. If no response is kept with the session any more, because that
   * of the turn was not stored, the session is deleted.
   *
   * @param conversation the session's opaque id. @param isKept whether the response was stored.
   * @throws TurnError
   */
  async onTurnEnd(conversation: string, isKept: boolean, principal: Principal): Promise<void> {
    if (this.#emptied.delete(conversation) && !isKept) await this.#deleteEmpty(conversation, principal);
  }

  /**
   * Deletes a session without responses, once no turn uses it. A session that somebody else has
   * gone on with, such as chat completions, stays: its last turn is not one of a response.
   * @param account in which that turn is reserved. Without it, nobody looks.
   */
  async #deleteEmpty(conversation: string, principal: Principal, account?: Account): Promise<void> {
    try {
      const { status } = await this.#conversations.get(conversation, principal);
      if (status !== 'idle') this.#emptied.add(conversation);
      else if (!account || (await this.#isOfResponses(conversation, principal, account)))
        await this.#conversations.delete(conversation, principal);
    } catch (error) {
      if (!(error instanceof TurnError) || error.code !== 'conversation_not_found') throw error;
    }
  }

  async #isOfResponses(conversation: string, principal: Principal, account: Account): Promise<boolean> {
    const { turns } = await this.#conversations.turns(conversation, { order: 'desc', limit: 1 }, principal, account);
    return turns.every(({ record }) => record?.id !== undefined);
  }

  /**
   * The conversation up to a response, its own turn included.
   *
   * @param account in which the memory of each turn is reserved before it is loaded (S-52).
   * @param shown what is taken of the messages of a turn.
   * @throws TurnError
   */
  async history(
    { conversation, turn }: LocatedResponse,
    principal: Principal,
    account: Account,
    shown: (messages: readonly Message[], view: ToolView) => readonly Message[] = (messages) => messages,
  ): Promise<readonly Message[]> {
    const messages: Message[] = [];
    for (let after = 0; after < turn; ) {
      const limit = Math.min(MAX_TURNS, turn - after);
      const wanted = { order: 'asc', limit, after, maxBytes: MAX_BYTES } as const;
      const page = await this.#conversations.turns(conversation, wanted, principal, account);
      if (page.turns.length === 0) break;
      for (const one of page.turns) messages.push(...shown(one.messages, page));
      after += page.turns.length;
    }
    return messages;
  }

  get #conversations(): Conversations {
    return this.#runtimes.one().conversations;
  }
}
