// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys them
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** Removes control characters, except line breaks and tabs: a model's text moves no cursor. */
export function printable(text: string): string {
  return text.replace(CONTROLS, '');
}
