import type { AgentEvent, ModelEvent } from '@plugboard/kernel';

/** Bytes of a value that is not a text, and of an object or list beside what it holds. */
const VALUE_SIZE = 16;

/**
 * What an event holds, in characters: every text in it, whoever wrote it (S-75). Each type of event
 * has its line here: a new one does not compile without.
 */
export function sizeOfEvent(event: AgentEvent | ModelEvent): number {
  switch (event.type) {
    case 'text':
      return (event.json ?? event.text).length;
    case 'reasoning':
      return event.text.length;
    case 'tool-call-delta':
      return event.arguments.length;
    case 'tool-call':
      return event.id.length + event.name.length + event.arguments.length + sizeOfValue(event.extra);
    case 'tool-progress':
      return event.message.length;
    case 'tool-result':
      return event.images.reduce((sum, image) => sum + image.length, event.content.length);
    case 'approval':
      return sizeOfEvent(event.call);
    case 'extra':
      return sizeOfValue(event.extra);
    case 'nested':
      return event.events.reduce((sum, inner) => sum + VALUE_SIZE + sizeOfEvent(inner), 0);
    case 'end':
      return sizeOfValue(event.extra) + (event.rawReason?.length ?? 0) + (event.stopSequence?.length ?? 0);
    case 'finished':
      return (event.rawReason?.length ?? 0) + (event.stopSequence?.length ?? 0);
    case 'failed':
      return event.failure.message.length;
    case 'started':
    case 'step':
    case 'usage':
      return 0; // numbers, and names of the server itself
    default:
      return sizeOfValue(event satisfies never);
  }
}

/** The size of any JSON value, however deep: data of a provider. */
function sizeOfValue(value: unknown): number {
  if (value === undefined) return 0;
  let size = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const one = open.pop();
    size += VALUE_SIZE;
    if (typeof one === 'string') size += one.length;
    else if (Array.isArray(one)) for (const inner of one) open.push(inner);
    else if (typeof one === 'object' && one !== null) {
      for (const [key, inner] of Object.entries(one)) {
        size += key.length;
        open.push(inner);
      }
    }
  }
  return size;
}
