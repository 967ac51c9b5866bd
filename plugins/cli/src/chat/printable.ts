// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys them
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * Removes what a terminal would obey, except line breaks and tabs: a model's text moves no cursor
 * and sets no title.
 */
export function printable(text: string): string {
  return text.replace(CONTROLS, '');
}
