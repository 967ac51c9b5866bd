import type { Message } from '@plugboard/kernel';
import { isToolImagesMessage, type ToolMessage } from '@plugboard/kernel/contracts';
import type { ToolOutcome } from '../tools/run-tool.js';
import { isBlocked, type SettledTail } from './approval-tail.js';

/** Stands for the result of an approved call, which runs after interceptors received the turn. */
const PENDING = 'The call was approved and is about to run.';

/**
 * Adds the results of the open calls of the tail to the new messages: those of denied calls, and
 * empty ones for approved calls, which run before the first model call. While calls wait, only
 * results of the caller are new.
 *
 * @param hasResults whether the request has results of the caller's own tools.
 */
export function withTail(fresh: readonly Message[], tail: SettledTail, hasResults: boolean): readonly Message[] {
  if (isBlocked(tail)) return hasResults ? fresh : [];
  const pending = tail.approved.map(({ call }): ToolMessage => ({ role: 'tool', tool_call_id: call.id, content: PENDING }));
  const end = endOfResults(fresh);
  return [...fresh.slice(0, end), ...tail.closing, ...pending, ...fresh.slice(end)];
}

/**
 * Puts the results of approved calls in the place of the empty ones.
 *
 * @param answer begins with these results. What an interceptor has dropped of them comes from
 *   `outcomes`.
 * @param open ids of calls that wait again, and have none.
 */
export function withResults(
  added: readonly Message[],
  answer: readonly Message[],
  outcomes: ReadonlyMap<string, ToolOutcome>,
  open: ReadonlySet<string>,
): readonly Message[] {
  const start = startOfAnswer(answer);
  if (start === 0 && outcomes.size === 0 && open.size === 0) return [...added, ...answer];
  const lead = answer.slice(0, start);
  const end = endOfResults(added);
  const isImages = (index: number) => isToolImagesMessage(lead, index);
  const results = resultsIn(lead);
  return [
    ...added
      .slice(0, end)
      .filter((message) => message.role !== 'tool' || !open.has(message.tool_call_id))
      .map((message) => resultFor(message, results, outcomes)),
    ...lead.filter((_, index) => isImages(index)),
    ...added.slice(end),
    ...answer.slice(start),
  ];
}

/** The first message of the model: what comes before are results of approved calls. */
export function startOfAnswer(answer: readonly Message[]): number {
  const found = answer.findIndex(({ role }) => role === 'assistant');
  return found < 0 ? answer.length : found;
}

/** Puts results in the place of the empty ones in the conversation for the model. */
export function withLead(conversation: readonly Message[], lead: readonly Message[]): readonly Message[] {
  if (lead.length === 0) return conversation;
  const results = resultsIn(lead);
  const replaced = conversation.map((message) => resultFor(message, results, new Map()));
  const images = lead.filter((_, index) => isToolImagesMessage(lead, index));
  const last = replaced.findLastIndex(({ role }) => role === 'tool') + 1;
  return [...replaced.slice(0, last), ...images, ...replaced.slice(last)];
}

/** The results among messages, by the ids of their calls: the first of each. */
function resultsIn(messages: readonly Message[]): ReadonlyMap<string, ToolMessage> {
  const results = new Map<string, ToolMessage>();
  for (const message of messages)
    if (message.role === 'tool' && !results.has(message.tool_call_id)) results.set(message.tool_call_id, message);
  return results;
}

function resultFor(
  message: Message,
  results: ReadonlyMap<string, ToolMessage>,
  outcomes: ReadonlyMap<string, ToolOutcome>,
): Message {
  if (message.role !== 'tool') return message;
  const found = results.get(message.tool_call_id);
  const outcome = outcomes.get(message.tool_call_id);
  return found ?? (outcome ? { ...message, content: outcome.content } : message);
}

function endOfResults(messages: readonly Message[]): number {
  const end = messages.findIndex(({ role }) => role !== 'tool');
  return end < 0 ? messages.length : end;
}
