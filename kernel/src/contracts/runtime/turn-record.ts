import type { TurnFinished } from '../events/event.js';
import type { Usage } from '../model/usage.js';

/**
 * What happened in a turn, or has happened so far. The runtime stores it with a turn of a session,
 * as JSON. Times are in milliseconds, of a clock that never jumps; `start` and `firstToken` count
 * from the arrival of the request.
 *
 * @experimental
 */
export interface TurnRecord {
  /** The id by which the caller knew the turn (`TurnRequest.id`), if it had one. */
  readonly id?: string | undefined;
  /** When the request arrived, since the epoch. Unknown if the process died during the turn. */
  readonly startedAt?: number | undefined;
  /** How long it waited: for earlier turns of its session, and for the limits of the server. */
  readonly queued: number;
  /** From the arrival of the request to the end; to now, while the turn runs. */
  readonly duration: number;
  /** Tokens of all model calls. Undefined if the turn did not end well. */
  readonly usage?: Usage | undefined;
  /**
   * Why it ended; undefined while it runs. `interrupted`: the process died. Only turns that failed
   * in the process that still runs have `failed`: they are not stored.
   */
  readonly reason?: TurnFinished['reason'] | 'interrupted' | 'failed' | undefined;
  /** The agent's limit that ended it, if one did. */
  readonly limit?: TurnFinished['limit'];
  /** The model calls, in order. */
  readonly steps: readonly {
    /** The connection that answered. */
    readonly connection: string;
    readonly start: number;
    /** When the first text, reasoning or tool call arrived. */
    readonly firstToken?: number | undefined;
    /** Undefined while the model answers. */
    readonly duration?: number | undefined;
    /** Undefined if the model server reported none. */
    readonly usage?: Usage | undefined;
    /** The model's reasoning, with `toolVisibility: full` only; a long one is cut, with a note. */
    readonly reasoning?: string | undefined;
    /** How long the model reasoned, from the first to the last piece that arrived. */
    readonly reasoned?: number | undefined;
  }[];
  /** The tool calls, in the order in which they began. */
  readonly calls: readonly {
    readonly id: string;
    /** The tool's name at the model. */
    readonly name: string;
    /** As in the event `tool-call`. Undefined for a client tool. */
    readonly tool?: { readonly entry: string; readonly name: string } | undefined;
    /** The number of the step that made it, from 1; 0 for a call of an earlier turn. */
    readonly step: number;
    readonly start: number;
    /** How long it ran. Undefined if it did not run or has no result. */
    readonly duration?: number | undefined;
    /**
     * - `completed`, `failed`: the tool ran, and its result is in the messages of the turn;
     * - `unknown`: its result says that it is unknown whether the call took effect;
     * - `waiting`: a person has to approve it;
     * - `client`: the caller runs it;
     * - `cut`: it has no result, or none yet.
     */
    readonly state: 'completed' | 'failed' | 'unknown' | 'waiting' | 'client' | 'cut';
    /** The id of the request for approval, if there was one. */
    readonly approval?: string | undefined;
    /**
     * The arguments, as JSON text. Only of a call of an earlier turn, and of one that a person must
     * approve after it began: those that the person sees, with the `tool`.
     */
    readonly arguments?: string | undefined;
    /** What happened in the turn that the call started. Times count as in this record. */
    readonly nested?:
      | {
          readonly agent: string;
          /** Tokens of all its model calls, nested ones included, so far. */
          readonly usage: Usage;
          readonly steps: TurnRecord['steps'];
          readonly calls: TurnRecord['calls'];
        }
      | undefined;
  }[];
  /** Decisions about calls of an earlier turn that took effect with this one. */
  readonly decisions?:
    | readonly {
        /** The id of the request for approval. */
        readonly approval: string;
        /** The id of the call. */
        readonly call: string;
        readonly approve: boolean;
        readonly reason?: string | undefined;
        /**
         * Who decided: a person; nobody in time; another message of the session; whoever cancelled
         * the session; too many wrong codes; a copy of the session.
         */
        readonly by: 'person' | 'expired' | 'overtaken' | 'cancelled' | 'guessed' | 'copied';
      }[]
    | undefined;
}
