import type { ToolOutput } from '@plugboard/kernel';
import { type AgentEvents, isTerminal, type TurnFailed, type TurnFinished } from '@plugboard/kernel/contracts';

/**
 * The result of a call: the last text of the agent. If a limit or a failure ended the turn, all
 * texts that it had, and a last line that says so (AG-8).
 */
export async function answerOf(agent: string, events: AgentEvents): Promise<ToolOutput> {
  /** By step. */
  const texts = [''];
  let end: TurnFinished | TurnFailed | undefined;
  for await (const batch of events) {
    for (const event of batch) {
      if (event.type === 'step') texts.push('');
      else if (event.type === 'text' && !event.isNotice) texts.push(texts.pop() + event.text);
      else if (isTerminal(event)) end = event;
    }
  }
  if (end?.type === 'finished' && end.reason === 'stop') {
    const last = texts.at(-1) ?? '';
    return last.trim() === '' ? failure(`The agent "${agent}" ended without an answer.`) : last;
  }
  const said = texts.filter((text) => text.trim() !== '');
  if (end?.type === 'failed') return failure(partial(said, end.failure.message, end.failure.code));
  const why = end?.limit ?? end?.reason ?? 'abandoned';
  return said.length > 0 ? partial(said, '', why) : failure(partial(said, `The agent "${agent}" had no answer yet.`, why));
}

/** A result that tells the model of a failure. */
export function failure(text: string): ToolOutput {
  return { content: [{ type: 'text', text }], isError: true };
}

/** @param instead the text of an agent that had none. */
function partial(said: readonly string[], instead: string, why: string): string {
  return [...(said.length > 0 ? said : [instead]), `[partial: ${why}]`].join('\n');
}
