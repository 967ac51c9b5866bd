import type { Message } from '@plugboard/kernel';
import type { FunctionCallPart } from '@plugboard/kernel/contracts';
import { type StepExtras, withExtras } from '@plugboard/turn-routes';

/** A message, and the index of the first item that it was made of. */
interface Made {
  readonly message: Message;
  readonly origin: number;
}

/** A message with what belongs to it, which may arrive later. */
interface Slot extends Made {
  /** Calls of an assistant message, by their ids. */
  readonly calls: Map<string, FunctionCallPart>;
  /** What was sealed of the model's thinking. */
  readonly extras: StepExtras[];
  /** The results of its calls, which follow it. */
  readonly results: Made[];
}

/**
 * The messages of an input while they are made. Calls and results find their messages by an index,
 * and nothing is moved: the time is proportional to the items, however they are ordered (S-64).
 */
export class MessageList {
  readonly #slots: Slot[] = [];
  /** Results of calls that the input does not have: they follow the system messages. */
  readonly #first: Made[] = [];
  /** The index of the slot that they precede: undefined while nothing else follows the prompt. */
  #firstAt: number | undefined;
  #hasResult = false;
  /** Whether there is an assistant message. */
  hasAnswer = false;

  get length(): number {
    return this.#slots.length;
  }

  /** The origin of the last message; 0 if there is none. */
  get lastOrigin(): number {
    const last = this.#slots.at(-1);
    return last?.results.at(-1)?.origin ?? last?.origin ?? 0;
  }

  /** Returns the index of the message. */
  push(message: Message, origin: number): number {
    const { role } = message;
    const isLeading = role === 'tool' || (role === 'system' && !this.#hasResult);
    if (!isLeading) this.#firstAt ??= this.#slots.length;
    this.#hasResult ||= role === 'tool';
    this.hasAnswer ||= role === 'assistant';
    return this.#slots.push({ message, origin, calls: new Map(), extras: [], results: [] }) - 1;
  }

  isAssistant(index: number | undefined): index is number {
    return index !== undefined && this.#slots[index]?.message.role === 'assistant';
  }

  /** The calls of a message; undefined if there is no such message. */
  callsOf(index: number | undefined): Map<string, FunctionCallPart> | undefined {
    return index === undefined ? undefined : this.#slots[index]?.calls;
  }

  /** Adds a result behind the message with its call. */
  addResult(index: number, message: Message, origin: number): void {
    this.#slots[index]?.results.push({ message, origin });
  }

  /**
   * Adds a result of a call of the conversation that is continued. Returns false if it must be
   * pushed: nothing else follows the system messages.
   */
  addFirst(message: Message, origin: number): boolean {
    if (this.#firstAt === undefined) return false;
    this.#first.push({ message, origin });
    return true;
  }

  sign(index: number, extras: StepExtras): void {
    const known = this.#slots[index]?.extras;
    if (known?.at(-1) !== extras) known?.push(extras);
  }

  /** The origins of all messages, which are in order. */
  all(): ReadonlyMap<Message, number> {
    const origins = new Map<Message, number>();
    const add = ({ message, origin }: Made) => origins.set(message, origin);
    for (const [index, slot] of this.#slots.entries()) {
      if (index === this.#firstAt) this.#first.forEach(add);
      add({ message: complete(slot), origin: slot.origin });
      slot.results.forEach(add);
    }
    return origins;
  }
}

/** A message with its calls. */
function complete({ message, calls, extras }: Slot): Message {
  if (message.role !== 'assistant' || calls.size === 0) return message;
  const content = message.content === '' ? null : message.content;
  return withExtras({ ...message, content, tool_calls: [...calls.values()] }, extras);
}
