import type { AgentEvent } from '@plugboard/kernel';
import type { Target } from '@plugboard/kernel/contracts';

/**
 * What callers may see of the events of a turn that a tool call started: less what the
 * `toolVisibility` of its agent hides. With `names`, calls have no arguments, no results and no
 * turns of their own.
 */
export function shownNested(events: readonly AgentEvent[], visibility: Target['toolVisibility']): readonly AgentEvent[] {
  if (visibility === 'full') return events;
  return events.flatMap((event): readonly AgentEvent[] => {
    switch (event.type) {
      case 'started':
      case 'text':
      case 'usage':
      case 'finished':
      case 'failed':
        return [event];
      case 'step':
        return visibility === 'names' ? [event] : [];
      case 'tool-call': {
        const { type, id, name, tool } = event;
        return visibility === 'names' ? [{ type, id, name, tool, arguments: '' }] : [];
      }
      case 'tool-result':
        return visibility === 'names' ? [{ ...event, content: '', images: [] }] : [];
      default:
        return [];
    }
  });
}
