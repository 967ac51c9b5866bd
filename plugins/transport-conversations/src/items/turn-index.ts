import type { Message } from '@plugboard/kernel';
import type { ToolCallPart, ToolMessage, TurnRecord } from '@plugboard/kernel/contracts';

/** A tool call in the record of a turn. */
export type CallRecord = TurnRecord['calls'][number];

/** What a record says about a decision of a person. */
type Decision = NonNullable<TurnRecord['decisions']>[number];

/** Where a call or its result is in a turn: the index of the message, and of the call in it. */
interface CallPlace {
  readonly message: number;
  readonly call?: number | undefined;
}

/**
 * Finds what belongs together in a turn. Each list is read once: a turn may have any number of
 * calls, also more than a message may have today (S-64).
 */
export class TurnIndex {
  /** By the index of the message with the calls, and the id of the call. */
  readonly #results = new Map<number, Map<string, ToolMessage>>();
  readonly #calls = new Map<number, Map<string, ToolCallPart>>();
  /** For each message the index of the last one before it that is no result, or -1. */
  readonly #asking: readonly number[];
  /** For each message the number of assistant messages from it to the end. */
  readonly #answersLeft: readonly number[];
  readonly #places = new Map<string, CallPlace>();
  readonly #anyResult = new Map<string, ToolMessage>();
  readonly #records = new Map<string, CallRecord>();
  readonly #decisions = new Map<string, Decision>();

  constructor(messages: readonly Message[], record: TurnRecord | undefined) {
    const asking: number[] = [];
    let last = -1;
    for (const [index, message] of messages.entries()) {
      asking.push(last);
      if (message.role === 'tool') this.#addResult(message, index, last);
      else last = index;
      if (message.role === 'assistant') this.#addCalls(message.tool_calls ?? [], index);
    }
    this.#asking = asking;
    const answersLeft: number[] = [];
    let left = 0;
    for (let index = messages.length - 1; index >= 0; index--) {
      if (messages[index]?.role === 'assistant') left += 1;
      answersLeft.push(left);
    }
    this.#answersLeft = answersLeft.reverse();
    for (const call of record?.calls ?? []) addFirst(this.#records, call.id, call);
    for (const decision of record?.decisions ?? []) addFirst(this.#decisions, decision.call, decision);
  }

  /** The result of a call of a message. Results directly follow their calls. */
  resultOf(id: string, message: number): ToolMessage | undefined {
    return this.#results.get(message)?.get(id);
  }

  /** The call of a result. */
  callOf(id: string, message: number): ToolCallPart | undefined {
    return this.#calls.get(this.#asking[message] ?? -1)?.get(id);
  }

  /** The first result with the id of a call, wherever it is. */
  anyResultOf(id: string): ToolMessage | undefined {
    return this.#anyResult.get(id);
  }

  /** Where a call was made, or where its result is. */
  placeOf(id: string): CallPlace | undefined {
    return this.#places.get(id);
  }

  answersLeft(message: number): number {
    return this.#answersLeft[message] ?? 0;
  }

  /** What the record says about a call. */
  recordOf(id: string): CallRecord | undefined {
    return this.#records.get(id);
  }

  decisionOf(call: string): Decision | undefined {
    return this.#decisions.get(call);
  }

  #addResult(message: ToolMessage, index: number, asking: number): void {
    const results = this.#results.get(asking) ?? new Map<string, ToolMessage>();
    this.#results.set(asking, results);
    addFirst(results, message.tool_call_id, message);
    addFirst(this.#anyResult, message.tool_call_id, message);
    addFirst(this.#places, message.tool_call_id, { message: index });
  }

  #addCalls(calls: readonly ToolCallPart[], index: number): void {
    const byId = new Map<string, ToolCallPart>();
    for (const [at, call] of calls.entries()) {
      addFirst(byId, call.id, call);
      addFirst(this.#places, call.id, { message: index, call: at });
    }
    this.#calls.set(index, byId);
  }
}

function addFirst<V>(map: Map<string, V>, key: string, value: V): void {
  if (!map.has(key)) map.set(key, value);
}
