import type { Principal, SessionStore, StateChange, Turn } from '@plugboard/kernel';
import { OPEN, type SessionId, type TurnToolCall } from '@plugboard/kernel/contracts';
import { digestOf } from '../../engine/diagnostics/log-fields.js';
import { ToolRefused } from '../../engine/tools/intercept-tool.js';
import type { ToolOutcome } from '../../engine/tools/run-tool.js';
import type { CallJournal, ServerCall } from '../../engine/tools/tool-runner.js';
import type { AgentTool } from '../../engine/tools/toolbox.js';
import type { SessionStorage } from '../store/session-storage.js';

/** Before the keys of calls in the state of the runtime. */
const PREFIX = 'call/';
/** Milliseconds until a call is forgotten whose session no process has taken up. */
const LIFETIME = 30 * 24 * 60 * 60_000;
/** Calls that are read at once. */
const PAGE = 100;

/** A call that may write and has begun, as JSON. */
export interface BegunCall {
  readonly session: SessionId;
  readonly turnId: string;
  /** Number of the call in its turn. */
  readonly index: number;
  readonly call: TurnToolCall & { readonly tool: NonNullable<TurnToolCall['tool']> };
  /** A hash of the tool's schema. */
  readonly schema: string;
  /** The caller of the turn; null for `OPEN`. */
  readonly principal: Principal | null;
  /** When it began, in milliseconds since the epoch. */
  readonly begunAt: number;
  /** Undefined if the process died before it had one. */
  readonly outcome?: ToolOutcome | undefined;
}

interface TurnJournalOptions {
  readonly storage: SessionStorage;
  /** The entry of the runtime, whose state has the calls. */
  readonly entry: string;
  readonly session: SessionId;
  readonly turn: Turn;
  /** Returns milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * The calls of one turn that may write, in the state of the runtime while the turn runs.
 *
 * 1. `begin` stores a call with its key, before its tool runs; `end` its outcome.
 * 2. The commit of the turn removes them (`removals`), and so does `clear` for a turn that fails.
 * 3. What a dead process left is found by `begunCalls`, and the session goes on with it.
 */
export class TurnJournal implements CallJournal {
  readonly #options: TurnJournalOptions;
  readonly #begun = new Map<number, BegunCall>();

  constructor(options: TurnJournalOptions) {
    this.#options = options;
  }

  async begin({ call, index }: ServerCall, { entry, tool }: AgentTool): Promise<void> {
    const { session, turn, now } = this.#options;
    const { extra: _, ...kept } = call;
    const begun: BegunCall = {
      session,
      turnId: turn.id,
      index,
      call: { ...kept, tool: { entry, name: tool.name } },
      schema: digestOf(tool.inputSchema),
      principal: turn.principal === OPEN ? null : turn.principal,
      begunAt: now(),
    };
    this.#begun.set(index, begun);
    try {
      await this.#put(begun);
    } catch (error) {
      throw new ToolRefused('The call did not run: the session store failed.', { cause: error });
    }
  }

  async end({ index }: ServerCall, outcome: ToolOutcome): Promise<void> {
    const begun = this.#begun.get(index);
    // If this fails, a later process knows as much as after a crash during the call.
    if (begun) await this.#put({ ...begun, outcome }).catch(() => {});
  }

  /** Removes the calls, together with the commit of their turn. */
  get removals(): readonly StateChange[] {
    return removalsOf([...this.#begun.values()], this.#options.entry);
  }

  /** The turn has failed, and its caller knows that tools had run. Never rejects. */
  async clear(): Promise<void> {
    const { storage, session } = this.#options;
    if (this.#begun.size === 0) return;
    await storage.call((store) => store.state.change(this.removals), 'state.change', session).catch(() => {});
  }

  async #put(begun: BegunCall): Promise<void> {
    const { storage, entry, session } = this.#options;
    const change = { entry, key: keyOf(begun), text: JSON.stringify(begun), expiresIn: LIFETIME };
    await storage.call((store) => store.state.change([change]), 'state.change', session);
  }
}

/**
 * The calls that are stored now, by the ids of their turns, in their order.
 * @param turnId of the only turn that is looked for.
 */
export async function begunCalls(
  store: SessionStore,
  entry: string,
  turnId?: string,
): Promise<ReadonlyMap<string, readonly BegunCall[]>> {
  const found: BegunCall[] = [];
  const prefix = turnId === undefined ? PREFIX : `${PREFIX}${turnId}/`;
  for (let after: string | undefined, isLast = store.isVolatile === true; !isLast; ) {
    const page = await store.state.list(entry, { prefix, after, limit: PAGE });
    found.push(...page.map(({ text }) => JSON.parse(text) as BegunCall));
    after = page.at(-1)?.key;
    isLast = page.length < PAGE;
  }
  return Map.groupBy(
    found.sort((one, other) => one.index - other.index),
    ({ turnId }) => turnId,
  );
}

/** Removes calls together with a commit that makes them part of their session. */
export function removalsOf(calls: readonly BegunCall[], entry: string): readonly StateChange[] {
  return calls.map((begun) => ({ entry, key: keyOf(begun), text: undefined }));
}

function keyOf({ turnId, index }: Pick<BegunCall, 'turnId' | 'index'>): string {
  return `${PREFIX}${turnId}/${index}`;
}
