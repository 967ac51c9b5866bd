import type { ContentPart, Message } from '../messages/message.js';

const INTRODUCTION = 'Images from the tool results above:';

/**
 * The message that shows the model the images that tools returned. Tool messages hold text only, so
 * the images follow them as if a user had sent them.
 *
 * @param images URLs, `data:` URLs included.
 * @experimental
 */
export function toolImagesMessage(images: readonly string[]): Message {
  const parts = images.map((url): ContentPart => ({ type: 'image_url', image_url: { url } }));
  return { role: 'user', content: [{ type: 'text', text: INTRODUCTION }, ...parts] };
}

/** Whether `toolImagesMessage` made the message at `index`. @experimental */
export function isToolImagesMessage(messages: readonly Message[], index: number): boolean {
  const { role, content } = messages[index] ?? {};
  if (role !== 'user' || typeof content !== 'object' || messages[index - 1]?.role !== 'tool') return false;
  const first = content?.[0];
  return first?.type === 'text' && first.text === INTRODUCTION;
}
