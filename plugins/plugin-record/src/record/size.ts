import type { Message, ModelEvent, ToolOutput } from '@plugboard/kernel';

/** Characters of JSON around a value, about. */
const OVERHEAD = 64;

/** About how long a message is as JSON. Its texts are not copied to find out. */
function sizeOfMessage(message: Message): number {
  let size = OVERHEAD;
  const { content } = message;
  if (typeof content === 'string') size += content.length;
  else for (const part of content ?? []) size += sizeOfValue(part);
  if (message.role === 'assistant') for (const call of message.tool_calls ?? []) size += sizeOfValue(call);
  return size;
}

export function sizeOfMessages(messages: readonly Message[], from = 0): number {
  let size = 0;
  for (let index = from; index < messages.length; index++) size += sizeOfMessage(messages[index] as Message);
  return size;
}

export function sizeOfEvent(event: ModelEvent): number {
  if (event.type === 'text' || event.type === 'reasoning') return event.text.length;
  return event.type === 'tool-call' ? OVERHEAD + event.arguments.length : OVERHEAD;
}

export function sizeOfOutput(output: ToolOutput): number {
  return typeof output === 'string' ? output.length : output.content.reduce((size, part) => size + sizeOfValue(part), 0);
}

/** The texts of a value, to a depth that no message exceeds. */
function sizeOfValue(value: unknown, depth = 4): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null || depth === 0) return 8;
  return Object.values(value).reduce((size: number, one) => size + sizeOfValue(one, depth - 1), OVERHEAD);
}
