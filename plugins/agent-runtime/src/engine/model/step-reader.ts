import { type AgentEvent, type IdSource, ModelError, type ModelEvent } from '@plugboard/kernel';
import type { ModelEnd, ModelToolCall, ModelToolCallDelta } from '@plugboard/kernel/contracts';
import { NO_USAGE, SHAPE_LIMITS, type Usage } from '@plugboard/kernel/contracts';

const NONE: readonly string[] = [];
/** Of a connector, or of an interceptor around it. */
const NOT_A_BATCH = 'an answer of a model has something else than arrays of events; write yield [event]';

interface StreamedCall {
  readonly id: string;
  readonly name: string;
  readonly pieces: string[];
}

/**
 * Reads one model call: collects what the loop needs and returns the events for the readers of the
 * turn.
 *
 * Each tool call gets a unique, unguessable id (S-43): models repeat ids, such as `call_0` in every
 * answer. A call that callers see while the model writes it gets its id with its first piece, and
 * must then continue as it began.
 */
export class StepReader {
  usage: Usage = NO_USAGE;
  hasText = false;
  /** The connection that answers; empty before it has begun. */
  connection = '';
  readonly #ids: IdSource;
  readonly #streamedTools: readonly string[];
  readonly #onRead: ((batch: readonly ModelEvent[]) => void) | undefined;
  readonly #calls: ModelToolCall[] = [];
  /** By the model's ids. Most steps have none. */
  #streamed: Map<string, StreamedCall> | undefined;
  #end: ModelEnd | undefined;

  /**
   * @param streamedTools the names of the tools whose calls the readers see early.
   * @param onRead receives each batch before it is held. May throw.
   */
  constructor(ids: IdSource, streamedTools = NONE, onRead?: (batch: readonly ModelEvent[]) => void) {
    this.#ids = ids;
    this.#streamedTools = streamedTools;
    this.#onRead = onRead;
  }

  /**
   * Returns a batch of text unchanged.
   *
   * @throws ModelError if a call is another than it began, or for too many calls.
   */
  take(batch: readonly ModelEvent[]): readonly AgentEvent[] {
    if (!Array.isArray(batch)) throw new Error(NOT_A_BATCH);
    this.#onRead?.(batch);
    let shown: AgentEvent[] | undefined;
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i] as ModelEvent;
      switch (event.type) {
        case 'text':
          this.hasText = true;
          shown?.push(event);
          break;
        case 'reasoning':
          shown?.push(event);
          break;
        case 'usage':
          this.usage = event.usage;
          shown?.push(event);
          break;
        case 'tool-call-delta': {
          shown ??= batch.slice(0, i) as AgentEvent[];
          const delta = this.#addPiece(event);
          if (delta) shown.push(delta);
          break;
        }
        case 'tool-call':
          shown ??= batch.slice(0, i) as AgentEvent[];
          if (this.#calls.push(event) > SHAPE_LIMITS.calls)
            throw new ModelError(`its answer has more than ${SHAPE_LIMITS.calls} tool calls.`, { retryable: false });
          break;
        case 'end':
          this.#end = event;
          if (!this.#isCut) this.#checkPieces();
          return shown ?? (batch.slice(0, i) as AgentEvent[]);
      }
    }
    return shown ?? (batch as readonly AgentEvent[]);
  }

  /** Like `take`, for one read from the connector. @throws ModelError if the answer was cut off. */
  takeNext(result: IteratorResult<readonly ModelEvent[], unknown>): readonly AgentEvent[] {
    if (result.done) throw new ModelError('its answer was cut off.', { retryable: true });
    return this.take(result.value);
  }

  /** The id of a complete call. To be asked once per call. */
  takeId({ id }: ModelToolCall): string {
    const streamed = this.#streamed?.get(id);
    this.#streamed?.delete(id);
    return streamed?.id ?? this.#newId();
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Whether the connection attached data to its message or to a call. */
  get hasExtra(): boolean {
    return this.extra !== undefined || this.#calls.some(({ extra }) => extra !== undefined);
  }

  /** The data that the connection attached to its message. */
  get extra(): unknown {
    return this.#end?.extra;
  }

  /** Why the model stopped; `stop` until it has. */
  get reason(): ModelEnd['reason'] {
    return this.#end?.reason ?? 'stop';
  }

  /** What the model server named at the end: its own finish reason, the stop sequence. */
  get named(): Pick<ModelEnd, 'rawReason' | 'stopSequence'> {
    const { rawReason, stopSequence } = this.#end ?? {};
    return { ...(rawReason !== undefined && { rawReason }), ...(stopSequence !== undefined && { stopSequence }) };
  }

  /**
   * The complete tool calls. None if length or a filter cut the answer, since calls may then be
   * incomplete.
   */
  get calls(): readonly ModelToolCall[] {
    return this.#isCut ? [] : this.#calls;
  }

  get #isCut(): boolean {
    return this.reason === 'length' || this.reason === 'content_filter';
  }

  /** Returns the event for the readers of the turn; undefined if they do not see the call yet. */
  #addPiece({ id, name, arguments: piece }: ModelToolCallDelta): AgentEvent | undefined {
    if (!this.#streamedTools.includes(name)) return undefined;
    this.#streamed ??= new Map();
    const call = this.#streamed.get(id) ?? { id: this.#newId(), name, pieces: [] };
    this.#streamed.set(id, call);
    call.pieces.push(piece);
    return { type: 'tool-call-delta', id: call.id, name: call.name, arguments: piece };
  }

  /** @throws ModelError if a complete call is not the one that was streamed. */
  #checkPieces(): void {
    if (!this.#streamed) return;
    const byId = new Map(this.#calls.toReversed().map((call) => [call.id, call])); // the first one counts
    for (const [id, streamed] of this.#streamed) {
      const call = byId.get(id);
      if (!call || call.name !== streamed.name || !beginsWith(call.arguments, streamed.pieces)) {
        throw new ModelError(`it changed a call of the tool '${streamed.name}' that was already sent.`, { retryable: false });
      }
    }
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
