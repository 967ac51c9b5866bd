import type { Message, Turn } from '@plugboard/kernel';
import { isToolImagesMessage } from '@plugboard/kernel/contracts';
import type { Recording } from '../format/recording.js';

/**
 * The turn as the agent is to run it: the recorded conversation, with the prompt, the tools and the
 * parameters of the configuration.
 *
 * @param turn as the configuration makes it for the recorded request.
 */
export function injectedTurn(turn: Turn, { turn: recorded, attempts }: Recording): Turn {
  const messages = withSystem(turn.messages, withLead(recorded.messages, recorded.lead ?? []));
  if (!recorded.lead) return { ...turn, messages };
  // It goes on with the parameters of the turn that asked for approval, and forces no call again.
  const { tool_choice: choice } = attempts.find(({ step }) => step > 0)?.params ?? {};
  return { ...turn, messages, params: { ...recorded.params, tool_choice: choice } };
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
