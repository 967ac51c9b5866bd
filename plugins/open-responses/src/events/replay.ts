import { escaped, piecesOf } from '@plugboard/turn-routes';
import { callItem } from './client-call.js';
import { EventNumbers } from './event-numbers.js';
import { McpCallItem } from './mcp-call-item.js';
import { GrowingItem, type ItemPlace, WholeItem } from './output-item.js';
import { MESSAGE, REASONING, REFUSAL } from './text-forms.js';

/** Characters of a text in one event. */
const MAX_DELTA = 4096;

type Fields = Readonly<Record<string, unknown>>;

/** The answer of a response, as stored for repeated requests. */
export interface EndedAnswer {
  /** The model connection that answered first. */
  readonly connection: string | undefined;
  readonly response: EndedResponse;
}

/** A response that has ended, parsed. */
export interface EndedResponse {
  readonly id?: string;
  readonly created_at?: number;
  readonly status?: string;
  readonly output?: readonly Fields[];
  readonly usage?: unknown;
}

/**
 * The events of a response from its creation to its end, for a stream that is replayed: its items
 * are written again, one after the other.
 */
export function replayEvents(response: EndedResponse): readonly string[] {
  const running = { ...response, status: 'in_progress', completed_at: null, output: [], usage: null, incomplete_details: null };
  const numbers = new EventNumbers(undefined);
  const events: string[] = [];
  const show = (type: string, shown: EndedResponse) => events.push(numbers.event(type, `"response":${JSON.stringify(shown)}`));
  show('response.created', running);
  show('response.in_progress', running);
  for (const [index, item] of (response.output ?? []).entries()) writeItem(item, index, numbers, events);
  show(`response.${response.status}`, response);
  return events;
}

function writeItem(item: Fields, index: number, numbers: EventNumbers, out: string[]): void {
  const place = { id: String(item.id), index };
  const [part = {}] = (item.content ?? item.summary ?? []) as readonly Fields[];
  switch (item.encrypted_content === undefined && item.type) {
    case 'message': {
      const form = part.type === 'refusal' ? REFUSAL : MESSAGE;
      writeText(new GrowingItem(form, place, numbers), part[form.field], item, out);
      break;
    }
    case 'reasoning':
      writeText(new GrowingItem(REASONING, place, numbers), part.text, item, out);
      break;
    case 'function_call':
    case 'custom_tool_call': {
      const { call_id, name, namespace } = item as Record<string, string | undefined>;
      const type = item.type === 'custom_tool_call' ? 'custom' : 'function';
      const call = callItem(String(call_id), { type, name: String(name), namespace }, place, numbers);
      writeText(call, item[call.form.field], item, out);
      break;
    }
    case 'mcp_call':
      writeServerCall(item, place, numbers, out);
      break;
    default:
      new WholeItem(JSON.stringify(item), index, numbers).open(out);
  }
}

function writeText(item: GrowingItem, text: unknown, { status }: Fields, out: string[]): void {
  item.open(out);
  for (const piece of piecesOf(String(text ?? ''), MAX_DELTA)) item.add(escaped(piece), out);
  item.close(status === 'incomplete' ? 'incomplete' : 'completed', out);
}

function writeServerCall(item: Fields, place: ItemPlace, numbers: EventNumbers, out: string[]): void {
  const { server_label: entry, name, arguments: text, approval_request_id: approval, status, output, error } = item;
  const call = new McpCallItem(
    place,
    {
      tool: { entry: String(entry), name: String(name) },
      arguments: String(text),
      approval: approval as string | undefined,
      // A call that succeeded has its output, unless that was hidden.
      visibility: status === 'completed' && output === null ? 'names' : 'full',
    },
    numbers,
  );
  call.open(out);
  const failed = error as { readonly content?: readonly { readonly text?: string }[] } | null;
  if (status === 'incomplete') call.cut(out);
  else call.finish({ content: failed?.content?.[0]?.text ?? String(output), isError: status === 'failed' }, out);
}
