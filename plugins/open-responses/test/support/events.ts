import { strict as assert } from 'node:assert';

/** An event as a client parses it. */
export interface SentEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly output_index?: number;
  readonly item_id?: string;
  readonly delta?: string;
  readonly item?: SentItem;
  readonly response?: SentResponse;
  readonly [field: string]: unknown;
}

interface SentItem {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly [field: string]: unknown;
}

interface SentResponse {
  readonly id: string;
  readonly status: string;
  readonly output: readonly SentItem[];
  readonly [field: string]: unknown;
}

const TERMINAL = new Set(['response.completed', 'response.failed', 'response.incomplete']);

/**
 * Asserts the order rules of the protocol for all events of one response: numbers from 0 without
 * gaps, `response.created` first, each item added before its other events and done after them,
 * deltas that add up to the finished text, exactly one terminal event, and that as the last.
 */
export function assertGrammar(events: readonly SentEvent[]): void {
  assert.deepEqual(
    events.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
  assert.equal(events[0]?.type, 'response.created');
  assert.ok(['response.in_progress', 'response.queued'].includes(events[1]?.type ?? ''));
  assert.deepEqual(
    events.flatMap(({ type }, index) => (TERMINAL.has(type) ? [index] : [])),
    [events.length - 1],
    'one terminal event, at the end',
  );
  const open = new Map<number, { id: string; text: string }>();
  const done: SentItem[] = [];
  for (const event of events) {
    const index = event.output_index;
    if (index === undefined) continue;
    if (event.type === 'response.output_item.added') {
      assert.equal(index, open.size + done.filter(Boolean).length, 'items are numbered in the order in which they begin');
      open.set(index, { id: event.item?.id ?? '', text: '' });
      continue;
    }
    const item = open.get(index);
    assert.ok(item, `${event.type} belongs to an item that was added and is not done`);
    if (event.type === 'response.output_item.done') {
      assert.equal(event.item?.id, item.id);
      done[index] = event.item as SentItem;
      open.delete(index);
      continue;
    }
    assert.equal(event.item_id, item.id);
    if (event.type.endsWith('.delta')) item.text += event.delta;
    if (event.type.endsWith('_text.done')) assert.equal(event.text, item.text);
    if (event.type.endsWith('arguments.done')) assert.equal(event.arguments, item.text);
  }
  assert.equal(open.size, 0, 'every item is done');
  assert.deepEqual(events.at(-1)?.response?.output, done, 'the response holds the items as they were done');
}
