import type { Message } from '@plugboard/kernel';
import { tokensOf } from '../../engine/messages/message-size.js';

/** The estimated tokens of a conversation that only grows: no message is counted twice. */
export class TokenCount {
  #messages = 0;
  #tokens = 0;

  /** @param messages those of the last call, and what came after them. */
  of(messages: readonly Message[]): number {
    for (; this.#messages < messages.length; this.#messages++) this.#tokens += tokensOf(messages[this.#messages] as Message);
    return this.#tokens;
  }
}
