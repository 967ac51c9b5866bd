import type { Message } from '@plugboard/kernel';
import { textOf } from '@plugboard/kernel/contracts';

/**
 * The text of an answer: what follows the last tool result. It may end with the server's request
 * for approval.
 */
export function answerText(answer: readonly Message[]): string {
  const from = answer.findLastIndex(({ role }) => role !== 'assistant') + 1;
  const texts = answer.slice(from).map((message) => {
    const refusal = message.role === 'assistant' ? (message.refusal ?? '') : '';
    return textOf(message.content) + refusal;
  });
  return texts.filter((text) => text.trim() !== '').join('\n\n');
}

/** What the agent gets of a message: a message that it replies to is quoted before the text. */
export function messageText({ text, quoted }: { readonly text: string; readonly quoted?: string | undefined }): string {
  if (quoted === undefined || quoted === '') return text;
  const quote = quoted.split('\n').map((line) => `> ${line}`);
  return `${quote.join('\n')}\n\n${text}`;
}
