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

/** What is left to ask a provider that refused a request. */
export interface Remedies {
  /**
   * The messages to send after this failure, and why, for the log. Undefined if nothing is left.
   */
  after(error: ModelError): { readonly messages: readonly Message[]; readonly reason: string } | undefined;
  /** The provider accepted the last messages: what they lack is not sent to it again. */
  accepted(): void;
}

/**
 * Asks again for what a provider refused, with less of the conversation each time, so that nothing
 * that a session holds makes it fail for good: without what the provider attached to its
 * answers, without earlier images and files, without the oldest turns.
 *
 * @param mayTrim whether the oldest turns may be left out.
 */
export function remediesFor(asked: ModelRequest, connection: string, connector: ModelConnector, mayTrim: boolean): Remedies {
  const applied = new Set<Reason>();
  let shares = SHARES;
  let { messages } = asked;

  /** Without the oldest turns. What the provider attached to its answers belonged to these. */
  const trimmed = (): readonly Message[] | undefined => {
    const size = messages.reduce((sum, message) => sum + tokensOf(message), 0);
    for (const [index, share] of mayTrim ? shares.entries() : []) {
      const left = trimConversation(messages, size * share);
      if (left.length === messages.length) continue;
      shares = SHARES.slice(index + 1);
      return withoutExtras(left);
    }
    return undefined;
  };

  /** Undefined if it changes nothing. */
  const apply = (reason: Reason): readonly Message[] | undefined => {
    if (reason === 'length') return trimmed();
    const left = reason === 'extras' ? withoutExtras(messages) : withoutEarlierMedia(messages);
    if (left === messages) return undefined;
    // What the provider attached to answers after a changed message belonged to it as it was
    // (AI-8).
    return reason === 'media' ? withOwnExtras(left, connection, asked.tools) : left;
  };

  return {
    after(error) {
      if (!error.isRequestFault || error.code === 'content_filter') return undefined;
      for (const reason of reasonsOf(error)) {
        const left = apply(reason);
        if (left === undefined) continue;
        messages = left;
        applied.add(reason);
        return { messages, reason: REASONS[reason] };
      }
      return undefined;
    },
    accepted() {
      if (applied.has('extras')) refuseExtras(asked.messages);
      if (applied.has('media')) refuseMedia(asked.messages, connector);
    },
  };
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
