import { EventNumbers } from './event-numbers.js';

/** Characters of a text in one event. */
const MAX_DELTA = 4096;

type Fields = Readonly<Record<string, unknown>>;

/** A response that has ended, parsed. */
export interface EndedResponse {
  readonly status?: string;
  readonly output?: readonly Fields[];
}

/** An event without its number: its type, and its other fields. */
type ReplayedEvent = readonly [type: string, fields: Fields];

/** The events of a response from its creation to its end, for a stream that is replayed. */
export function replayEvents(response: EndedResponse): readonly string[] {
  const running = { ...response, status: 'in_progress', completed_at: null, output: [], usage: null, incomplete_details: null };
  const numbers = new EventNumbers(undefined);
  const events: readonly ReplayedEvent[] = [
    ['response.created', { response: running }],
    ['response.in_progress', { response: running }],
    ...(response.output ?? []).flatMap(eventsOfItem),
    [`response.${response.status}`, { response }],
  ];
  return events.map(([type, fields]) => numbers.event(type, JSON.stringify(fields).slice(1, -1)));
}

function eventsOfItem(item: Fields, output_index: number): readonly ReplayedEvent[] {
  const at = { output_index, item_id: item.id };
  return [
    ['response.output_item.added', { output_index, item: openItem(item) }],
    ...contentEvents(item, at),
    ['response.output_item.done', { output_index, item }],
  ];
}

/** An item as it begins. */
function openItem(item: Fields): Fields {
  switch (item.type) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] };
    case 'reasoning':
      return item.encrypted_content !== undefined ? item : { ...item, status: 'in_progress', summary: [] };
    case 'mcp_approval_request':
      return item;
    case 'mcp_call':
      return { ...item, status: 'in_progress', arguments: '', output: null, error: null };
    case 'compaction':
      return item;
    case 'custom_tool_call':
      return { ...item, status: 'in_progress', input: '' };
    default:
      return { ...item, status: 'in_progress', arguments: '' };
  }
}

function contentEvents(item: Fields, at: Fields): readonly ReplayedEvent[] {
  const { type, content, summary, name } = item;
  const text = typeof item.arguments === 'string' ? item.arguments : '';
  switch (type) {
    case 'message':
      return partsOf(content).flatMap((part, content_index) => partEvents(part, { ...at, content_index }));
    case 'reasoning':
      return partsOf(summary).flatMap((part, summary_index) => partEvents(part, { ...at, summary_index }));
    case 'mcp_approval_request':
      return [];
    case 'mcp_call':
      return [
        ['response.mcp_call.in_progress', at],
        ...deltas('response.mcp_call_arguments', text, at),
        ['response.mcp_call_arguments.done', { ...at, arguments: text }],
        [`response.mcp_call.${item.status === 'completed' ? 'completed' : 'failed'}`, at],
      ];
    case 'compaction':
      return [];
    case 'custom_tool_call':
      return inputEvents(item, at);
    default:
      return [
        ...deltas('response.function_call_arguments', text, at),
        // A call that was cut off is never done.
        ...unlessCut(item, ['response.function_call_arguments.done', { ...at, name, arguments: text }]),
      ];
  }
}

function inputEvents(item: Fields, at: Fields): readonly ReplayedEvent[] {
  const input = String(item.input);
  return [
    ...deltas('response.custom_tool_call_input', input, at),
    ...unlessCut(item, ['response.custom_tool_call_input.done', { ...at, input }]),
  ];
}

function unlessCut(item: Fields, done: ReplayedEvent): readonly ReplayedEvent[] {
  return item.status === 'incomplete' ? [] : [done];
}

/** The names of the events of a part, by its type, and the field of its text. */
const PARTS: Readonly<
  Record<string, { readonly part: string; readonly text: string; readonly field: string; readonly more: Fields }>
> = {
  output_text: {
    part: 'response.content_part',
    text: 'response.output_text',
    field: 'text',
    more: { logprobs: [] },
  },
  refusal: { part: 'response.content_part', text: 'response.refusal', field: 'refusal', more: {} },
  summary_text: {
    part: 'response.reasoning_summary_part',
    text: 'response.reasoning_summary_text',
    field: 'text',
    more: {},
  },
};

function partEvents(part: Fields, at: Fields): readonly ReplayedEvent[] {
  const names = PARTS[String(part.type)];
  if (!names) return [];
  const { field, more } = names;
  const text = String(part[field] ?? '');
  return [
    [`${names.part}.added`, { ...at, part: { ...part, [field]: '' } }],
    ...deltas(names.text, text, at, more),
    [`${names.text}.done`, { ...at, [field]: text, ...more }],
    [`${names.part}.done`, { ...at, part }],
  ];
}

function deltas(type: string, text: string, at: Fields, more: Fields = {}): readonly ReplayedEvent[] {
  const pieces: ReplayedEvent[] = [];
  for (let start = 0; start < text.length; ) {
    const end = endOfPiece(text, start);
    pieces.push([`${type}.delta`, { ...at, delta: text.slice(start, end), ...more }]);
    start = end;
  }
  return pieces;
}

/** Both halves of a surrogate pair are in one piece. */
function endOfPiece(text: string, start: number): number {
  const end = start + MAX_DELTA;
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

function partsOf(parts: unknown): readonly Fields[] {
  return Array.isArray(parts) ? parts : [];
}
