import type { Message, ModelConnector } from '@plugboard/kernel';
import type { ContentPart, RefusalPart, UserMessage } from '@plugboard/kernel/contracts';

const NOUNS: Readonly<Record<string, string>> = { image_url: 'image', input_audio: 'audio', video_url: 'video', file: 'file' };

/** Converts a part to text. Images and files become a note. @param why they are left out. */
export function textOfPart(part: ContentPart | RefusalPart, why: string): string {
  if (part.type === 'text') return part.text;
  if (part.type === 'refusal') return part.refusal;
  return `[${NOUNS[part.type] ?? 'content'} omitted: ${why}]`;
}

/**
 * Messages without the images and files before the last answer, which a provider may refuse: a URL
 * is gone, there are too many. Returns the list itself if it has none.
 */
export function withoutEarlierMedia(messages: readonly Message[]): readonly Message[] {
  const end = messages.findLastIndex(({ role }) => role === 'assistant');
  if (!messages.slice(0, Math.max(0, end)).some(hasMedia)) return messages;
  return messages.map((message, index) => (index < end && hasMedia(message) ? withoutMedia(message) : message));
}

/** Messages whose images and files a connection's provider refused, while they stay in memory. */
const refused = new WeakMap<ModelConnector, WeakSet<Message>>();

/**
 * The provider refused these messages, and accepted them without the images and files of earlier
 * ones.
 */
export function refuseMedia(messages: readonly Message[], connector: ModelConnector): void {
  const known = refused.get(connector) ?? new WeakSet();
  refused.set(connector, known);
  const end = messages.findLastIndex(({ role }) => role === 'assistant');
  for (const message of messages.slice(0, Math.max(0, end))) if (hasMedia(message)) known.add(message);
}

/** Messages for a connection without what its provider refused. */
export function withoutRefusedMedia(messages: readonly Message[], connector: ModelConnector): readonly Message[] {
  const known = refused.get(connector);
  if (!known) return messages;
  return messages.map((message) => (known.has(message) && hasMedia(message) ? withoutMedia(message) : message));
}

type WithMedia = UserMessage & { readonly content: readonly ContentPart[] };

/** Whether the message of a user has images or files. */
export function hasMedia(message: Message): message is WithMedia {
  return message.role === 'user' && typeof message.content !== 'string' && message.content.some(({ type }) => type !== 'text');
}

/**
 * The messages without their images and files: the same message each time, with what is kept with
 * it.
 */
const bare = new WeakMap<Message, Message>();

function withoutMedia(message: WithMedia): Message {
  const known = bare.get(message);
  if (known) return known;
  const content = message.content.map((part) => ({
    type: 'text' as const,
    text: textOfPart(part, 'the model did not accept it'),
  }));
  const made: Message = { ...message, content };
  bare.set(message, made);
  return made;
}
