import type { ToolCall } from '@plugboard/kernel';
import { type Account, TurnError, type TurnRequest } from '@plugboard/kernel/contracts';
import type { AgentRevision } from '../revision/agent-revision.js';
import type { WaitingChild } from '../tools/intercept-tool.js';
import type { AskedTurn, AskingCall } from '../tools/run-tool.js';
import type { SlotHolder } from './child-slots.js';
import type { TurnLease } from './turn-lease.js';
import type { TurnTask } from './turn-task.js';
import type { TurnUse } from './turn-use.js';

interface ParentCallOptions extends AskingCall {
  /** The turn that makes the call. */
  readonly request: TurnRequest;
  readonly account: Account;
  /** Of that turn, if it has one. */
  readonly lease: TurnLease | undefined;
  readonly revision: AgentRevision;
  readonly use: TurnUse;
  /** Whether the call can wait for a person. */
  readonly canWait: boolean;
  /** The call that started that turn. */
  readonly above: ParentCall | undefined;
}

/** By what their tools received. */
const calls = new WeakMap<ToolCall, ParentCall>();

/**
 * A running call of a tool that asks an agent, as the turn that it starts sees it: a child.
 *
 * 1. Its tool starts the turn with `TurnRequest.parent`. A call has one turn at a time.
 * 2. The turn has what the turn of the call has: caller, place, account, limits, agents as they
 *    were when that one began.
 * 3. When the call ends, the turn ends with it.
 */
export class ParentCall implements AskedTurn, SlotHolder {
  hasSlot = false;
  /** The turn that it started waits for a person. */
  waiting: WaitingChild | undefined;
  readonly options: ParentCallOptions;
  /** Levels of turns above the one that the call starts. */
  readonly level: number;
  #child: TurnTask | undefined;
  #isOver = false;

  constructor(options: ParentCallOptions) {
    this.options = options;
    this.level = (options.above?.level ?? 0) + 1;
    calls.set(options.call, this);
  }

  /** The call that starts a turn, if one does and it is running. */
  static of({ parent }: Pick<TurnRequest, 'parent'>): ParentCall | undefined {
    return parent && calls.get(parent);
  }

  /** Whether the call can start a turn now. */
  get isFree(): boolean {
    return !this.#isOver && (this.#child === undefined || this.#child.hasEnded);
  }

  /** The call above all others: one of the first turn. */
  get root(): ParentCall {
    return this.options.above?.root ?? this;
  }

  get lender(): ParentCall | undefined {
    for (let { above } = this.options; above; { above } = above.options)
      if (above.options.entry === this.options.entry && !above.#isOver) return above;
    return undefined;
  }

  /** The request of the child: what it has of the turn above is not the tool's to choose. */
  adopt(asked: TurnRequest): TurnRequest {
    const { call, request, account } = this.options;
    const { user, transport, metadata, requestId, connectionId, incremental } = request;
    const above = { user, transport, metadata, requestId, connectionId, incremental };
    return { ...asked, ...above, principal: call.principal, account };
  }

  start(child: TurnTask): void {
    this.#child = child;
  }

  /** Waits for a place among the calls of the entry. Returns undefined if one is free. */
  acquire(signal: AbortSignal): Promise<void> | undefined {
    return this.#slots.take(this, signal);
  }

  release(): void {
    this.#slots.release(this);
  }

  /** The call has ended. */
  end(): void {
    this.#isOver = true;
    const { reason } = this.options.call.signal;
    this.#child?.requestEnd(reason instanceof TurnError ? reason : callEnded());
  }

  get #slots() {
    const { use, entry, asks } = this.options;
    return use.slotsOf(entry, asks.maxChildren);
  }
}

function callEnded(): TurnError {
  return new TurnError('abandoned', 'The tool call that started the turn has ended.');
}
