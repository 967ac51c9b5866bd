/** What of a prompt stands for itself, and the rest, which is words about it. */
export interface Literals {
  /** What stood in quotes, without them. */
  readonly quoted: readonly string[];
  /** Paths, file names and URLs that stood without quotes. */
  readonly paths: readonly string[];
  /** The prompt without the above. */
  readonly rest: string;
}

const QUOTED = /"([^"]+)"|“([^”]+)”|«([^»]+)»|`([^`]+)`|(?<!\p{L})'([^']+)'(?!\p{L})/gu;

/** `.`, `..`, a URL, a word with a slash or backslash in it, or a file name with an ending. Not a number with a fraction. */
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
    return ' "'; // a full stop behind it stays behind something, and is not taken for the path `.`
  });
  const rest = unquoted
    .split(/\s+/)
    .filter((word) => {
      const bare = word.replaceAll(/^[([{]+|[)\]},;:!?]+$|(?<=[^.])\.+$/g, '');
      if (!looksLikePath(bare)) return true;
      paths.push(bare);
      return false;
    })
    .join(' ')
    .replaceAll('"', ' ');
  return { quoted, paths, rest };
}
