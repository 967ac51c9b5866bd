import { formatMarkdown } from './format-markdown.js';
import { htmlOf } from './html.js';
import { splitFormatted } from './split.js';

/** The messages that show the Markdown of a model, each as HTML of the Bot API. */
export function messagesOf(markdown: string): readonly string[] {
  return splitFormatted(formatMarkdown(markdown)).map(htmlOf);
}
