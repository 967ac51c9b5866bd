import type { AgentEvents, TurnEvents } from '@plugboard/kernel/contracts';

/**
 * Makes what `AgentRuntime.run` returns of plain events, for a runtime in a test.
 *
 * @param onCancel called when the turn is cancelled, or nobody reads it any more.
 * @experimental
 */
export function turnEvents(events: AgentEvents, onCancel: () => void = () => {}): TurnEvents {
  return {
    [Symbol.asyncIterator]: () => events[Symbol.asyncIterator](),
    cancel: async () => onCancel(),
    setRead: (isRead) => {
      if (!isRead) onCancel();
    },
  };
}
