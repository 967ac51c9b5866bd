import type { AgentEvent } from '@plugboard/kernel';

type Nested = Extract<AgentEvent, { type: 'nested' }>;

/** The fields of one `svc:nested`. */
interface NestedFields {
  /** The call that started the turn: an item of the response, or a `tool_call` of an outer turn. */
  readonly item_id: string;
  readonly agent: string;
  readonly event: object;
}

/**
 * What callers see of a turn that a tool call started, and of the turns that its own calls started.
 * Text that arrives together is one event.
 *
 * @param itemId of the call.
 */
export function* nestedEvents({ agent, events }: Nested, itemId: string): Generator<NestedFields> {
  let text = '';
  for (const [index, event] of events.entries()) {
    if (event.type === 'nested') yield* nestedEvents(event, event.call);
    if (event.type === 'text') text += event.text;
    if (text !== '' && events[index + 1]?.type !== 'text') {
      yield { item_id: itemId, agent, event: { type: 'text', text } };
      text = '';
    }
    const shown = shownAs(event);
    if (shown) yield { item_id: itemId, agent, event: shown };
  }
}

function shownAs(event: AgentEvent): object | undefined {
  switch (event.type) {
    case 'step':
      return { type: 'step', step: event.step, connection: event.connection };
    case 'tool-call': {
      const { id, tool, arguments: text } = event;
      return tool && { type: 'tool_call', id, server_label: tool.entry, name: tool.name, arguments: text };
    }
    case 'tool-result':
      return { type: 'tool_result', id: event.id, is_error: event.isError };
    case 'finished':
      return { type: 'end', reason: event.limit ?? event.reason };
    case 'failed':
      return { type: 'end', reason: event.failure.code };
    default:
      return undefined;
  }
}
