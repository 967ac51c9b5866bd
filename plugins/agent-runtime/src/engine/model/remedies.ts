import type { Message, ModelConnector, ModelError, ModelRequest } from '@plugboard/kernel';
import { refuseExtras, withOwnExtras, withoutExtras } from '../messages/extra.js';
import { refuseMedia, withoutEarlierMedia } from '../messages/media.js';
import { tokensOf } from '../messages/message-size.js';
import { trimConversation } from '../messages/newest-turns.js';

/** The shares of a conversation that are sent to a model that finds it too long. */
const SHARES = [0.5, 0.25, 0];

/** What the log says about a request that is sent again. */
const REASONS = {
  extras: 'a model refused a request and is asked again without the data that it attached to its answers',
  media: 'a model refused a request and is asked again without the images and files of earlier messages',
  length: 'a conversation is too long for a model, which is asked again without its oldest turns; lower contextWindow',
} as const;

type Reason = keyof typeof REASONS;

/**
 * Asks again for what a provider refused, with less of the conversation each time, so that nothing
 * that a session holds makes it fail for good: without what the provider attached to its
 * answers, without earlier images and files, without the oldest turns.
 */
export class Remedies {
  readonly #asked: ModelRequest;
  readonly #connection: string;
  readonly #connector: ModelConnector;
  readonly #mayTrim: boolean;
  readonly #applied = new Set<Reason>();
  #shares = SHARES;
  #messages: readonly Message[];

  /** @param mayTrim whether the oldest turns may be left out. */
  constructor(asked: ModelRequest, connection: string, connector: ModelConnector, mayTrim: boolean) {
    this.#asked = asked;
    this.#messages = asked.messages;
    this.#connection = connection;
    this.#connector = connector;
    this.#mayTrim = mayTrim;
  }

  /**
   * The messages to send after this failure, and why, for the log. Undefined if nothing is left.
   */
  after(error: ModelError): { readonly messages: readonly Message[]; readonly reason: string } | undefined {
    if (!error.isRequestFault || error.code === 'content_filter') return undefined;
    for (const reason of reasonsOf(error)) {
      const messages = this.#apply(reason);
      if (messages === undefined) continue;
      this.#messages = messages;
      this.#applied.add(reason);
      return { messages, reason: REASONS[reason] };
    }
    return undefined;
  }

  /** The provider accepted the last messages: what they lack is not sent to it again. */
  accepted(): void {
    if (this.#applied.has('extras')) refuseExtras(this.#asked.messages);
    if (this.#applied.has('media')) refuseMedia(this.#asked.messages, this.#connector);
  }

  /** Undefined if it changes nothing. */
  #apply(reason: Reason): readonly Message[] | undefined {
    if (reason === 'length') return this.#trimmed();
    const messages = reason === 'extras' ? withoutExtras(this.#messages) : withoutEarlierMedia(this.#messages);
    if (messages === this.#messages) return undefined;
    // What the provider attached to answers after a changed message belonged to it as it was
    // (AI-8).
    return reason === 'media' ? withOwnExtras(messages, this.#connection, this.#asked.tools) : messages;
  }

  /** Without the oldest turns. What the provider attached to its answers belonged to these. */
  #trimmed(): readonly Message[] | undefined {
    if (!this.#mayTrim) return undefined;
    const size = this.#messages.reduce((sum, message) => sum + tokensOf(message), 0);
    for (const [index, share] of this.#shares.entries()) {
      const messages = trimConversation(this.#messages, size * share);
      if (messages.length === this.#messages.length) continue;
      this.#shares = SHARES.slice(index + 1);
      return withoutExtras(messages);
    }
    return undefined;
  }
}

/**
 * What providers say when a part of the conversation is at fault. Gemini names nothing: "Request
 * contains an invalid argument".
 */
const HISTORY = /messages?\b|history|contents?\b|signature|thinking|thought|reasoning|tool|function|role|item|invalid argument/i;
const MEDIA = /image|media|mime|pixel|file|document|pdf|audio|video|url|download|too large|maximum size/i;

/** What may help, the likelier first. */
function reasonsOf({ code, message }: ModelError): readonly Reason[] {
  if (code === 'context_length_exceeded') return ['length'];
  const extras: readonly Reason[] = HISTORY.test(message) ? ['extras'] : [];
  return MEDIA.test(message) ? ['media', ...extras] : [...extras, 'media'];
}
