/** Longer addresses stay text: Telegram refuses them. */
const MAX_ADDRESS = 2048;
const SCHEMES = new Set(['http:', 'https:', 'mailto:', 'tel:', 'tg:']);

/** The part of a link in parentheses. */
interface Link {
  readonly address: string;
  /** The address, if Telegram links to it. */
  readonly url: string | undefined;
  /** The position behind the link. */
  readonly end: number;
}

/**
 * Reads `(address)` or `(address "title")` at a position. An address ends at a bracket, so that
 * reading many broken links stays linear.
 */
export function readLink(source: string, start: number): Link | undefined {
  if (source.charAt(start) !== '(') return undefined;
  const [address, afterAddress] = source.charAt(start + 1) === '<' ? readAngled(source, start + 2) : readBare(source, start + 1);
  const end = readTitle(source, afterAddress);
  if (end === undefined || address === '' || address.length > MAX_ADDRESS) return undefined;
  return { address, url: linkable(address), end };
}

/** `[address, position behind it]`; an empty address if there is none. */
function readBare(source: string, start: number): readonly [string, number] {
  let depth = 0;
  let at = start;
  for (; at < source.length; at++) {
    const char = source.charAt(at);
    if (char === '(') depth++;
    if (char === ')' && depth-- === 0) break;
    if (/[\s[\]<>]/.test(char)) break;
  }
  return [source.slice(start, at), at];
}

function readAngled(source: string, start: number): readonly [string, number] {
  let at = start;
  while (at < source.length && !/[<>\n]/.test(source.charAt(at))) at++;
  return source.charAt(at) === '>' ? [source.slice(start, at), at + 1] : ['', at];
}

/** Skips a title. @returns the position behind the closing parenthesis. */
function readTitle(source: string, start: number): number | undefined {
  let at = start;
  while (source.charAt(at) === ' ') at++;
  const quote = source.charAt(at);
  if (quote === '"' || quote === "'") {
    do at++;
    while (at < source.length && source.charAt(at) !== quote && source.charAt(at) !== '\n');
    at++;
    while (source.charAt(at) === ' ') at++;
  }
  return source.charAt(at) === ')' ? at + 1 : undefined;
}

function linkable(address: string): string | undefined {
  const url = URL.parse(address);
  return url !== null && SCHEMES.has(url.protocol) ? address : undefined;
}
