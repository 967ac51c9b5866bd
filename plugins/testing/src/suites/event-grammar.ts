import assert from 'node:assert/strict';
import type { AgentEvent } from '@plugboard/kernel';
import { type AgentEvents, isTerminal } from '@plugboard/kernel/contracts';

/**
 * Asserts the grammar of a turn (`AgentEvent`): `started`, other events, one terminal event; or a
 * single `failed`.
 *
 * @returns the terminal event.
 *
 * @experimental
 */
export function assertGrammar(events: readonly AgentEvent[]): AgentEvent {
  const types = events.map(({ type }) => type).join(', ') || 'nothing';
  const last = events.at(-1);
  assert.ok(last && isTerminal(last), `the stream has no terminal event at its end: ${types}`);
  assert.equal(events.filter(isTerminal).length, 1, `the stream has several terminal events: ${types}`);
  if (events.length === 1 && last.type === 'failed') return last;
  assert.equal(events[0]?.type, 'started', `the stream does not begin with \`started\`: ${types}`);
  assert.equal(events.filter(({ type }) => type === 'started').length, 1, `the stream has several \`started\`: ${types}`);
  return last;
}

/** Reads a stream to its end. */
export async function readAll(stream: AgentEvents): Promise<readonly AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const batch of stream) events.push(...batch);
  return events;
}
