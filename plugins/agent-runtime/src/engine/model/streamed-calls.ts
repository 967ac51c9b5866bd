import { type AgentEvent, type IdSource, ModelError } from '@plugboard/kernel';
import type { ModelToolCall, ModelToolCallDelta } from '@plugboard/kernel/contracts';

interface StreamedCall {
  readonly id: string;
  readonly name: string;
  readonly pieces: string[];
}

/**
 * The ids of the calls of one step. A call gets a unique, unguessable id (S-43): models repeat ids,
 * such as `call_0` in every answer. A call that callers see while the model writes it gets its id
 * with its first piece, and must then continue as it began.
 */
export class StreamedCalls {
  readonly #tools: readonly string[];
  readonly #ids: IdSource;
  /** By the model's ids. Most steps have none. */
  #calls: Map<string, StreamedCall> | undefined;

  /** @param tools the names of the tools whose calls are streamed. */
  constructor(tools: readonly string[], ids: IdSource) {
    this.#tools = tools;
    this.#ids = ids;
  }

  /** Returns the event for the readers of the turn; undefined if they do not see the call yet. */
  add({ id, name, arguments: piece }: ModelToolCallDelta): AgentEvent | undefined {
    if (!this.#tools.includes(name)) return undefined;
    this.#calls ??= new Map();
    const call = this.#calls.get(id) ?? { id: this.#newId(), name, pieces: [] };
    this.#calls.set(id, call);
    call.pieces.push(piece);
    return { type: 'tool-call-delta', id: call.id, name: call.name, arguments: piece };
  }

  /**
   * Checks the complete calls against their pieces.
   *
   * @throws ModelError if a call is not the one that was streamed.
   */
  check(calls: readonly ModelToolCall[]): void {
    if (!this.#calls) return;
    const byId = new Map(calls.toReversed().map((call) => [call.id, call])); // the first one counts
    for (const [id, streamed] of this.#calls) {
      const call = byId.get(id);
      if (!call || call.name !== streamed.name || !beginsWith(call.arguments, streamed.pieces)) {
        throw new ModelError(`it changed a call of the tool '${streamed.name}' that was already sent.`, { retryable: false });
      }
    }
  }

  /** The id of a complete call. To be asked once per call. */
  takeId({ id }: ModelToolCall): string {
    const streamed = this.#calls?.get(id);
    this.#calls?.delete(id);
    return streamed?.id ?? this.#newId();
  }

  #newId(): string {
    return `call_${this.#ids.base62(24)}`;
  }
}

function beginsWith(text: string, pieces: readonly string[]): boolean {
  let position = 0;
  for (const piece of pieces) {
    if (!text.startsWith(piece, position)) return false;
    position += piece.length;
  }
  return true;
}
