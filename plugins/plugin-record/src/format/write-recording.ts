import type { Message } from '@plugboard/kernel';
import type { Attempt, Line, Recording } from './recording.js';

/**
 * The lines of a recording as JSON, each with its newline. One line at a time: a turn may be large,
 * and others want the event loop.
 */
export function* linesOf(recording: Recording): Generator<string> {
  for (const line of parts(recording)) yield `${JSON.stringify(line)}\n`;
}

function* parts({ turn, attempts, tools, end }: Recording): Generator<Line> {
  yield turn;
  let before: Attempt | undefined;
  for (const current of attempts) {
    const { step, attempt, connection, model, messages, params, events, error, milliseconds } = current;
    const kept = sameStart(before?.messages ?? [], messages);
    const own = current.tools === before?.tools ? undefined : current.tools;
    const added = messages.slice(kept).map(withoutExtras);
    yield { type: 'model_request', step, attempt, connection, model, kept, messages: added, tools: own, params };
    yield { type: 'model_answer', step, attempt, events, error, milliseconds };
    before = current;
  }
  yield* tools;
  yield end;
}

/** How many messages two lists have in common at their beginning. */
export function sameStart(before: readonly unknown[], messages: readonly unknown[]): number {
  let same = 0;
  while (same < messages.length && messages[same] === before[same]) same++;
  return same;
}

/** What a connection attaches to its answers follows from them, and is in the line `turn`. */
export function withoutExtras(message: Message): Message {
  if (message.role !== 'assistant') return message;
  const { extra, tool_calls: calls, ...rest } = message;
  if (extra === undefined && !calls?.some((call) => call.extra !== undefined)) return message;
  return { ...rest, ...(calls && { tool_calls: calls.map(({ extra: _, ...call }) => call as (typeof calls)[number]) }) };
}
