/** The literal values in a prompt, and the remaining words. */
export interface Literals {
  /** Quoted texts, without their quotes. */
  readonly quoted: readonly string[];
  /** Unquoted paths, file names and URLs. */
  readonly paths: readonly string[];
  /** The rest of the prompt. */
  readonly rest: string;
}

const QUOTED = /"([^"]+)"|“([^“”]+)”|«([^«»]+)»|`([^`]+)`|(?<!\p{L})'([^']+)'(?!\p{L})/gu;

/**
 * `.`, `..`, a URL, a word with a slash or backslash, or a file name with an extension. Not a
 * decimal number.
 */
const PATH =
  /^(?:\.{1,2}|https?:\/\/.+|[.~]{0,2}[\\/].*|[A-Za-z]:[\\/].*|[\p{L}\p{N}_.-]+(?:[\\/][\p{L}\p{N}_.-]*)+|[\p{L}\p{N}_-]+\.\p{L}[\p{L}\p{N}]{0,7})$/u;

export function looksLikePath(text: string): boolean {
  return PATH.test(text);
}

export function literalsOf(prompt: string): Literals {
  const quoted: string[] = [];
  const paths: string[] = [];
  const unquoted = prompt.replaceAll(QUOTED, (_, ...groups: unknown[]) => {
    quoted.push(String(groups.slice(0, 5).find((group) => group !== undefined)));
    return ' "'; // so that a full stop after the quote is not read as the path `.`
  });
  const rest = unquoted
    .split(/\s+/)
    .filter((word) => {
      const bare = word.replaceAll(/^[([{]+|(?<![)\]},;:!?])[)\]},;:!?]+$|(?<=[^.])\.+$/g, '');
      if (!looksLikePath(bare)) return true;
      paths.push(bare);
      return false;
    })
    .join(' ')
    .replaceAll('"', ' ');
  return { quoted, paths, rest };
}
