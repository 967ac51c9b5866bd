import type { Message } from '@plugboard/kernel';
import { isToolImagesMessage, type ToolMessage } from '@plugboard/kernel/contracts';
import type { ToolOutcome } from '../../engine/tools/run-tool.js';
import type { ApprovalRecord } from './approval.js';

/** Stands for the result of an approved call, which runs after interceptors received the turn. */
const PENDING = 'The call was approved and is about to run.';

/**
 * Adds the results of the calls that were open to the new messages: those of denied calls, and
 * empty ones for approved calls, which run before the first model call.
 */
export function inPlaceOfResults(
  fresh: readonly Message[],
  { approved, closing }: { readonly approved: readonly Pick<ApprovalRecord, 'call'>[]; readonly closing: readonly ToolMessage[] },
): readonly Message[] {
  const pending = approved.map(({ call }): ToolMessage => ({ role: 'tool', tool_call_id: call.id, content: PENDING }));
  const end = endOfResults(fresh);
  return [...fresh.slice(0, end), ...closing, ...pending, ...fresh.slice(end)];
}

/**
 * Puts the results of approved calls in the place of the empty ones.
 *
 * @param answer begins with these results.
 * @param outcomes what an interceptor may have dropped of them, by the ids of the calls.
 * @param open ids of calls that wait again, and have none.
 */
export function withResults(
  added: readonly Message[],
  answer: readonly Message[],
  outcomes: readonly (readonly [string, ToolOutcome])[],
  open: ReadonlySet<string>,
): readonly Message[] {
  const start = startOfAnswer(answer);
  const places = open.size === 0 ? added : added.filter((one) => one.role !== 'tool' || !open.has(one.tool_call_id));
  return [...withLead(places, answer.slice(0, start), outcomes), ...answer.slice(start)];
}

/**
 * Puts results in the place of the empty ones in a conversation.
 *
 * @param lead the results, with their images.
 * @param outcomes results that are missing there, by the ids of the calls.
 */
export function withLead(
  conversation: readonly Message[],
  lead: readonly Message[],
  outcomes: readonly (readonly [string, ToolOutcome])[] = [],
): readonly Message[] {
  if (lead.length === 0 && outcomes.length === 0) return conversation;
  const results = new Map([...outcomes.map(([id, { content }]) => [id, content] as const), ...resultsIn(lead)]);
  const replaced = conversation.map((message) => resultFor(message, results));
  const last = replaced.findLastIndex(({ role }) => role === 'tool') + 1;
  return [...replaced.slice(0, last), ...imagesIn(lead), ...replaced.slice(last)];
}

/** The first message of the model: what comes before are results of approved calls. */
function startOfAnswer(answer: readonly Message[]): number {
  const found = answer.findIndex(({ role }) => role === 'assistant');
  return found < 0 ? answer.length : found;
}

/** The results among messages, by the ids of their calls: the first of each. */
function resultsIn(messages: readonly Message[]): ReadonlyMap<string, ToolMessage['content']> {
  const results = new Map<string, ToolMessage['content']>();
  for (const message of messages)
    if (message.role === 'tool' && !results.has(message.tool_call_id)) results.set(message.tool_call_id, message.content);
  return results;
}

function imagesIn(lead: readonly Message[]): readonly Message[] {
  return lead.filter((_, index) => isToolImagesMessage(lead, index));
}

function resultFor(message: Message, results: ReadonlyMap<string, ToolMessage['content']>): Message {
  const content = message.role === 'tool' ? results.get(message.tool_call_id) : undefined;
  return content === undefined ? message : ({ ...message, content } as Message);
}

function endOfResults(messages: readonly Message[]): number {
  const end = messages.findIndex(({ role }) => role !== 'tool');
  return end < 0 ? messages.length : end;
}
