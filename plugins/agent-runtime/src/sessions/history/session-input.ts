import type { Message } from '@plugboard/kernel';
import type { ToolMessage } from '@plugboard/kernel/contracts';
import { openToolCalls, TurnError } from '@plugboard/kernel/contracts';
import { withoutExtras } from '../../engine/messages/extra.js';

const NONE: ReadonlySet<string> = new Set();

/** The messages of a request to a session. */
interface SessionInput {
  /** System messages: they apply to this turn and are not stored. */
  readonly system: readonly Message[];
  /** The new messages, which are stored with the turn. */
  readonly added: readonly Message[];
}

/**
 * Selects the new messages of a request: those after its last assistant message, or all if the
 * session is new. So clients may resend the whole conversation.
 *
 * @param kept ids of open calls that do not wait for the caller, or not now. They stay open.
 * @param mayBeEmpty whether the request says something besides messages.
 * @throws TurnError `invalid_request` if there are no new messages, or tool results that answer no
 *   open call.
 */
export function newMessages(
  history: readonly Message[],
  request: readonly Message[],
  kept: ReadonlySet<string> = NONE,
  mayBeEmpty = false,
): SessionInput {
  const system = request.filter(({ role }) => role === 'system');
  const start = startOfNew(history, request);
  const all: number[] = [];
  for (let index = start; index < request.length; index++) if (request[index]?.role !== 'system') all.push(index);
  const indexes = withoutRepeated(history, request, all);
  const fresh = indexes.map((index) => request[index] as Message);
  if (
    !(mayBeEmpty && fresh.length === 0) &&
    (!fresh.some(({ role }) => role === 'user' || role === 'tool' || role === 'function') || fresh.at(-1)?.role === 'assistant')
  ) {
    throw invalidRequest('messages', 'A session turn needs a user or tool message after the last assistant message.');
  }
  if (history.length === 0) assertPairedToolCalls(request);
  const closing = closeOpenCalls(history, fresh, (index) => indexes[index] ?? index, kept);
  return { system, added: closing.length === 0 ? fresh : [...closing, ...fresh] };
}

/** Whether a request adds messages to a session, and does not only decide about calls. */
export function hasNewMessages(history: readonly Message[], request: readonly Message[]): boolean {
  const start = startOfNew(history, request);
  return request.some(({ role }, index) => index >= start && role !== 'system');
}

function startOfNew(history: readonly Message[], request: readonly Message[]): number {
  return history.length === 0 ? 0 : request.findLastIndex(({ role }) => role === 'assistant') + 1;
}

/**
 * Leaves out the results before a message that the session has already (CL-7): a client that has
 * not seen the answer sends them again, and goes on.
 *
 * @param indexes of the new messages of the request.
 */
function withoutRepeated(
  history: readonly Message[],
  request: readonly Message[],
  indexes: readonly number[],
): readonly number[] {
  const isOther = (index: number) => request[index]?.role !== 'tool';
  const first = indexes.findIndex(isOther);
  if (first <= 0) return indexes;
  const answered = new Set(history.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])));
  for (const id of openToolCalls(history)) answered.delete(id);
  return indexes.filter((index, at) => {
    const message = request[index];
    return at > first || message?.role !== 'tool' || !answered.has(message.tool_call_id);
  });
}

/**
 * Checks messages that are appended outside of a turn: no system messages, and every provider must
 * accept the resulting conversation. Returns them with results for open tool calls.
 *
 * @throws TurnError `invalid_request`
 */
export function messagesToAppend(history: readonly Message[], messages: readonly Message[]): readonly Message[] {
  const prompt = messages.findIndex(({ role }) => role === 'system');
  if (prompt >= 0)
    throw invalidRequest(
      `items[${prompt}].role`,
      'A session does not store system messages; set the prompt of the agent, or send one with each turn.',
    );
  const other = messages.findIndex(({ role }) => role !== 'tool');
  const results = history.length === 0 ? 0 : other < 0 ? messages.length : other;
  const closing = closeOpenCalls(history, messages.slice(0, results), (index) => index);
  assertPairedToolCalls(messages, results);
  return [...closing, ...withoutExtras(messages)];
}

/**
 * A session may have open client tool calls. Tool messages must then answer exactly these. A user
 * message closes them instead, each with an error result, so that every provider accepts the
 * history.
 *
 * @param indexOf returns the index of a fresh message in its request, for errors.
 */
function closeOpenCalls(
  history: readonly Message[],
  fresh: readonly Message[],
  indexOf: (index: number) => number,
  kept: ReadonlySet<string> = NONE,
): readonly ToolMessage[] {
  if (history.length === 0) return [];
  const open = new Set(openToolCalls(history).filter((id) => !kept.has(id)));
  if (open.size === 0 && fresh.every(({ role }) => role !== 'tool')) return [];
  // Results must directly follow their calls.
  const firstOther = fresh.findIndex(({ role }) => role !== 'tool');
  const leading = firstOther < 0 ? fresh.length : firstOther;
  for (const [index, message] of fresh.entries()) {
    if (message.role !== 'tool') continue;
    if (index >= leading || !open.delete(message.tool_call_id)) {
      throw invalidRequest(`messages[${indexOf(index)}].tool_call_id`, notOpen(history, message.tool_call_id));
    }
  }
  if (leading > 0 && open.size > 0) {
    throw invalidRequest('messages', `The results of these tool calls are missing: ${[...open].join(', ')}.`);
  }
  return [...open].map((id) => ({
    role: 'tool',
    tool_call_id: id,
    content: 'Error: the caller returned no result for this call.',
  }));
}

/**
 * Says why a result matches no open call. A client that has not seen an answer may repeat the
 * result.
 */
function notOpen(history: readonly Message[], id: string): string {
  const isKnown = history.some((message) => message.role === 'tool' && message.tool_call_id === id);
  if (!isKnown) return `The session has no open tool call '${id}' at this place.`;
  return (
    `The session already has the result of the tool call '${id}' and what followed it. ` +
    'Read the answer in the conversation, or send a new message.'
  );
}

/**
 * Every stored call must have its result, and every result its call.
 * @param from results before this index answer earlier calls.
 */
export function assertPairedToolCalls(messages: readonly Message[], from = 0): void {
  /** The indexes of the messages of open calls, by the ids of the calls. */
  const open = new Map<string, number>();
  for (let index = from; index < messages.length; index++) {
    const message = messages[index] as Message;
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id)) {
        throw invalidRequest(
          `messages[${index}]`,
          `messages[${index}] answers the tool call '${message.tool_call_id}', which is not open at this place.`,
        );
      }
    } else if (message.role !== 'system') {
      assertNoOpenCalls(open);
      if (message.role === 'assistant') for (const { id } of message.tool_calls ?? []) open.set(id, index);
    }
  }
  assertNoOpenCalls(open);
}

function assertNoOpenCalls(open: ReadonlyMap<string, number>): void {
  for (const [id, index] of open) {
    throw invalidRequest(`messages[${index}]`, `messages[${index}] has the tool call '${id}', which no tool message answers.`);
  }
}

function invalidRequest(param: string, message: string): TurnError {
  return new TurnError('invalid_request', message, { param });
}
