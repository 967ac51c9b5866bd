import type { AssistantMessage, Message, ToolMessage } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel';

/** What a request to a session brings. */
export interface SessionInput {
  /** Applies to this turn, and is not kept. */
  readonly system: readonly Message[];
  /** What is new to the session, and is kept with the turn. */
  readonly added: readonly Message[];
}

/**
 * What a request contributes to a session (sessions.md 2.3): what follows its last assistant message, or, where the session is new, all of it. Clients that resend the whole
 * conversation so do not double it. System messages apply to this turn and are not kept.
 *
 * @throws TurnError `invalid_request` where the request holds nothing new, or tool results that answer no open call.
 */
export function newMessages(history: readonly Message[], request: readonly Message[]): SessionInput {
  const system = request.filter(({ role }) => role === 'system');
  const start = history.length === 0 ? 0 : request.findLastIndex(({ role }) => role === 'assistant') + 1;
  const fresh = request.slice(start).filter(({ role }) => role !== 'system');
  if (
    !fresh.some(({ role }) => role === 'user' || role === 'tool' || role === 'function') ||
    fresh.at(-1)?.role === 'assistant'
  ) {
    throw invalidRequest('messages', 'A turn of a session needs a user or tool message after the last assistant message.');
  }
  if (history.length === 0) assertPairedToolCalls(request);
  const added = [...closeOpenCalls(history, fresh, start), ...fresh];
  return { system, added };
}

/**
 * What is added to a session outside of a turn: any messages but those of the system, as long as every provider takes the conversation that they make.
 *
 * @throws TurnError `invalid_request`
 */
export function appendedMessages(history: readonly Message[], messages: readonly Message[]): readonly Message[] {
  const prompt = messages.findIndex(({ role }) => role === 'system');
  if (prompt >= 0)
    throw invalidRequest(
      `items[${prompt}].role`,
      'A session keeps no system messages: the prompt is the agent’s, or comes with a turn.',
    );
  const other = messages.findIndex(({ role }) => role !== 'tool');
  const results = history.length === 0 ? 0 : other < 0 ? messages.length : other;
  const closing = closeOpenCalls(history, messages.slice(0, results), 0);
  assertPairedToolCalls(messages, results);
  return [...closing, ...messages];
}

/** The calls of the last assistant message that no tool message has answered yet: they wait for the caller's results. */
export function openCalls(messages: readonly Message[]): readonly string[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const asking = messages[last] as AssistantMessage | undefined;
  const answered = new Set(
    messages.slice(last + 1).flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])),
  );
  return (asking?.tool_calls ?? []).map(({ id }) => id).filter((id) => !answered.has(id));
}

/**
 * The session may wait for results of calls that the caller was to run. Tool messages must then answer exactly these; a user message closes them, each with an error,
 * so that the history stays one that every provider takes.
 */
function closeOpenCalls(history: readonly Message[], fresh: readonly Message[], start: number): readonly ToolMessage[] {
  if (history.length === 0) return [];
  const open = new Set(openCalls(history));
  // Results stand right behind their calls: before anything else that is new.
  const firstOther = fresh.findIndex(({ role }) => role !== 'tool');
  const leading = firstOther < 0 ? fresh.length : firstOther;
  for (const [index, message] of fresh.entries()) {
    if (message.role !== 'tool') continue;
    if (index >= leading || !open.delete(message.tool_call_id)) {
      throw invalidRequest(
        `messages[${start + index}].tool_call_id`,
        `No call with the id '${message.tool_call_id}' waits for a result at this place in the session.`,
      );
    }
  }
  if (leading > 0 && open.size > 0) {
    throw invalidRequest('messages', `The results of these tool calls are missing: ${[...open].join(', ')}.`);
  }
  return [...open].map((id) => ({ role: 'tool', tool_call_id: id, content: 'Error: the caller gave no result for this call.' }));
}

/** What is kept is a conversation that every provider takes: each call has its result, each result its call. @param from the results before it answer earlier calls. */
function assertPairedToolCalls(messages: readonly Message[], from = 0): void {
  let open = new Map<string, number>();
  for (const [index, message] of messages.entries()) {
    if (index < from) continue;
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id)) {
        throw invalidRequest(
          `messages[${index}]`,
          `messages[${index}] answers the tool call '${message.tool_call_id}', which is not open there.`,
        );
      }
    } else if (message.role !== 'system') {
      assertNoOpenCalls(open);
      open = new Map(message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => [id, index]) : []);
    }
  }
  assertNoOpenCalls(open);
}

function assertNoOpenCalls(open: ReadonlyMap<string, number>): void {
  for (const [id, index] of open) {
    throw invalidRequest(`messages[${index}]`, `messages[${index}] calls a tool, and no tool message answers the call '${id}'.`);
  }
}

function invalidRequest(param: string, message: string): TurnError {
  return new TurnError('invalid_request', message, { param });
}
