import type { Message } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import type { Attempt, Recording, ToolLine } from '../format/recording.js';
import { withoutExtras } from '../format/write-recording.js';

/** One model call of a turn as it is compared: what was sent last, and the calls that it made. */
export interface Step {
  readonly step: number;
  readonly model: { readonly connection: string; readonly model: string };
  /** The system message that the request begins with. Null without one. */
  readonly prompt: unknown;
  readonly tools: readonly ToolDeclaration[];
  readonly params: Readonly<Record<string, unknown>>;
  /** The messages that the step before did not have. */
  readonly messages: readonly Message[];
  readonly calls: readonly StepCall[];
}

export type StepCall = Pick<ToolLine, 'name' | 'arguments' | 'state'>;

/**
 * The steps of a turn. Summaries of earlier turns are not among them: a replay begins after them.
 *
 * @param isIgnored whether an attempt does not count.
 */
export function stepsOf({ attempts, tools }: Recording, isIgnored: (attempt: Attempt) => boolean = () => false): readonly Step[] {
  const last = lastAttempts(attempts.filter((attempt) => attempt.step > 0 && !isIgnored(attempt)));
  let before: readonly Message[] = [];
  return last.map(({ step, connection, model, messages: sent, tools: declared, params }) => {
    const [first] = sent;
    const isPrompt = first?.role === 'system';
    const conversation = (isPrompt ? sent.slice(1) : sent).map(comparable);
    const messages = addedTo(before, conversation);
    before = conversation;
    return {
      step,
      model: { connection, model },
      prompt: isPrompt ? first.content : null,
      tools: declared,
      params,
      messages,
      calls: tools
        .filter((line) => line.step === step)
        .map(({ name, arguments: written, state }) => ({ name, arguments: written, state })),
    };
  });
}

/** What the server sends in place of an image or a file that a model refused in an earlier turn. */
const REFUSED = /^\[\w+ omitted: the model did not accept it\]$/;
const MEDIA = { type: 'text', text: '[image or file]' } as const;

/**
 * A message without what the server remembers of earlier turns: what a connection attached to its
 * answers, and which images it refused.
 */
function comparable(message: Message): Message {
  if (message.role !== 'user' || typeof message.content === 'string') return withoutExtras(message);
  const content = message.content.map((part) => (part.type === 'text' && !REFUSED.test(part.text) ? part : MEDIA));
  return { ...message, content };
}

/** The last attempt of each step: the one that answered, if one did. */
function lastAttempts(attempts: readonly Attempt[]): readonly Attempt[] {
  return attempts.filter(({ step, attempt }, index) => {
    const next = attempts[index + 1];
    return next === undefined || next.step !== step || next.attempt <= attempt;
  });
}

/** All messages, if the conversation does not continue the one before: its oldest are gone. */
function addedTo(before: readonly Message[], conversation: readonly Message[]): readonly Message[] {
  const isContinued = before.every((message, index) => {
    const other = conversation[index];
    return message === other || JSON.stringify(message) === JSON.stringify(other);
  });
  return isContinued ? conversation.slice(before.length) : conversation;
}
