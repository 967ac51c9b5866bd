import type { ToolMessage } from '@plugboard/kernel/contracts';
import { type ToolOutcome, toolError } from '../../engine/tools/run-tool.js';
import type { Decision } from './approval.js';

const WHY: Readonly<Record<Exclude<Decision['by'], 'person'>, string>> = {
  expired: 'nobody approved it in time',
  overtaken: 'the conversation went on before anybody approved it',
  cancelled: 'the conversation was cancelled before anybody approved it',
  guessed: 'too many wrong codes were tried',
};

/** Why a call was denied; undefined if a person did it. */
export function reasonWithoutPerson(decision: Decision | undefined): string | undefined {
  const { by } = decision ?? { by: 'overtaken' };
  return by === 'person' ? undefined : WHY[by];
}

/** What the model is told of a call that was denied. */
export function denialOf(decision: Decision | undefined): string {
  const { by, reason } = decision ?? { by: 'overtaken' };
  if (by !== 'person') return `The call was denied and did not run: ${WHY[by]}.`;
  return reason === undefined
    ? 'A person denied the call. It did not run.'
    : `A person denied the call. It did not run. The reason: ${reason}`;
}

/** What the model is told of a call that a copy of the session cannot run. */
export const DENIED_IN_COPY = 'The call was denied and did not run: the conversation was copied before it was approved.';

/** A call that was approved, but cannot run as it was shown. */
export function changedTool(tool: string): ToolOutcome {
  return toolError(`The call was approved but did not run: the tool ${tool} has changed since, or is no longer available.`);
}

/** A call with effects that began, and was cut off. */
export const UNKNOWN_EFFECT = toolError(
  'The call was approved and began to run, but was interrupted. Whether it took effect is unknown, and it was not run again.',
);

export function deniedMessage(callId: string, content: string): ToolMessage {
  return { role: 'tool', tool_call_id: callId, content };
}
