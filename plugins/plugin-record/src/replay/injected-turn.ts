import type { Message, Turn } from '@plugboard/kernel';
import { isToolImagesMessage, textOf } from '@plugboard/kernel/contracts';
import type { Recording } from '../format/recording.js';

/**
 * The turn as the agent is to run it: the recorded conversation, with the prompt, the tools and the
 * parameters of the configuration.
 *
 * @param turn as the configuration makes it for the recorded request.
 */
export function injectedTurn(turn: Turn, { turn: recorded, attempts }: Recording): Turn {
  const [first] = attempts.filter(({ step }) => step > 0);
  const conversation = withLead(recorded.messages, recorded.lead ?? []);
  const messages = withSystem(turn.messages, withoutRefusedMedia(conversation, first?.messages ?? []));
  if (!recorded.lead) return { ...turn, messages };
  // It goes on with the parameters of the turn that asked for approval, and forces no call again.
  return { ...turn, messages, params: { ...recorded.params, tool_choice: first?.params.tool_choice } };
}

/** What a caller's system message does is up to the agent: those of `made` replace the recorded. */
function withSystem(made: readonly Message[], recorded: readonly Message[]): readonly Message[] {
  const system = made.filter(isSystem);
  const isSame = JSON.stringify(system) === JSON.stringify(recorded.filter(isSystem));
  return isSame ? recorded : [...system, ...recorded.filter((message) => !isSystem(message))];
}

function isSystem({ role }: Message): boolean {
  return role === 'system';
}

/** Puts the results of approved calls in their places. Their images follow the last result. */
function withLead(messages: readonly Message[], lead: readonly Message[]): readonly Message[] {
  if (lead.length === 0) return messages;
  const results = new Map(lead.flatMap((one) => (one.role === 'tool' ? [[one.tool_call_id, one.content] as const] : [])));
  const replaced = messages.map((message) => {
    const content = message.role === 'tool' ? results.get(message.tool_call_id) : undefined;
    return message.role === 'tool' && content !== undefined ? { ...message, content } : message;
  });
  const images = lead.filter((_, index) => isToolImagesMessage(lead, index));
  const last = replaced.findLastIndex(({ role }) => role === 'tool') + 1;
  return [...replaced.slice(0, last), ...images, ...replaced.slice(last)];
}

/** What the server says in place of an image or a file that a model did not accept. */
const OMITTED = /^\[\w+ omitted: /;

/** The server remembers which images a model refused in earlier turns: they were not sent again. */
function withoutRefusedMedia(messages: readonly Message[], sent: readonly Message[]): readonly Message[] {
  const reduced = sent.filter(({ content }) => Array.isArray(content) && content.some((part) => OMITTED.test(textOf([part]))));
  if (reduced.length === 0) return messages;
  return messages.map((message) => reduced.find((one) => isReduced(one, message)) ?? message);
}

function isReduced({ role, content: reduced }: Message, { role: original, content }: Message): boolean {
  if (role !== original || !Array.isArray(reduced) || !Array.isArray(content) || reduced.length !== content.length) return false;
  return content.every((part, index) =>
    part.type === 'text' ? textOf([part]) === textOf([reduced[index]]) : OMITTED.test(textOf([reduced[index]])),
  );
}
