import { parseHtml } from './parse-html.js';

const MAX_TEXT = 4096;

/** Why Telegram would refuse a text, as its API says it. */
export function formattingFault(text: string, parseMode: unknown): string | undefined {
  let shown = text;
  try {
    if (parseMode === 'HTML') shown = parseHtml(text).text;
  } catch (error) {
    return `Bad Request: ${(error as Error).message}`;
  }
  if (shown.trim() === '') return 'Bad Request: message text is empty';
  if (shown.length > MAX_TEXT) return 'Bad Request: message is too long';
  return text.isWellFormed() ? undefined : 'Bad Request: text must be encoded in UTF-8';
}
