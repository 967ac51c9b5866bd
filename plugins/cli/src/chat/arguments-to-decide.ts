/** Characters of one argument that are shown. */
const MAX_SHOWN = 200;

/** Characters that change how other text looks, or look like nothing. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/**
 * The arguments that a person decides about: each on a line of its own if they are long, shortened
 * for itself, with invisible characters as escapes (S-74).
 *
 * @param text JSON.
 */
export function argumentsToDecide(text: string): string {
  if (text.length <= MAX_SHOWN) return visible(text);
  let input: unknown;
  try {
    input = JSON.parse(text);
  } catch {
    return visible(shortened(text));
  }
  if (typeof input !== 'object' || input === null) return visible(shortened(text));
  const lines = Object.entries(input).map(([name, value]) => `\n  ${visible(`${name}: ${shortened(JSON.stringify(value))}`)}`);
  return `${lines.join('')}\n `;
}

function shortened(text: string): string {
  if (text.length <= MAX_SHOWN) return text;
  const [begin, end] = [text.slice(0, 150), text.slice(-50)].map((part) => part.toWellFormed());
  return `${begin}… (shortened: ${text.length} characters in total) …${end}`;
}

function visible(text: string): string {
  return text.replaceAll(INVISIBLE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
