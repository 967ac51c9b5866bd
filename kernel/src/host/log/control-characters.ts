/** Escapes the control characters that JSON may contain: terminals obey some of them (S-46). */
export function escapeC1(json: string): string {
  return json.search(C1) < 0 ? json : json.replace(C1, escaped);
}

/** Escapes all control characters of a text for a terminal, except line breaks and tabs. */
export function printable(text: string): string {
  return text.replace(NOT_PRINTABLE, escaped);
}

const C1 = /[\x7f-\x9f]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
const NOT_PRINTABLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
