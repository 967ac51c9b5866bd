import type { YAMLError } from 'yaml';

/** A syntax error of a YAML file, in one sentence. */
export interface SyntaxFault {
  readonly message: string;
  /** Whether the error is within one text, so that what follows is parsed correctly. */
  readonly isLocal: boolean;
}

const OF_KEYS = 'the line is not aligned with the other keys of its map; indent it as they are';
const MISSING_COLON = '": " is missing after the key; write a text of several lines in a block, indented below "key: |"';

/** Describes a syntax error and its cure. For rare errors, these are the parser's own words. */
export function syntaxFault({ code, message, pos: [offset] }: YAMLError, text: string): SyntaxFault {
  const before = text.slice(0, offset);
  const char = text[offset] ?? '';
  switch (code) {
    case 'BLOCK_AS_IMPLICIT_KEY':
      if (message.includes('sequence'))
        return lost('a map cannot contain list items ("- "); align this one with the items of its list');
      return colonFollows(text, offset) ? local(colonInText(before)) : lost(keyBelowText(before));
    case 'BLOCK_IN_FLOW':
      return lost('inside { } or [ ], a text that contains ": " must be in quotes, and a comma must separate entries');
    case 'MULTILINE_IMPLICIT_KEY':
      return lost(/^[\w-]+:\S/.test(text.slice(offset)) ? 'a space is missing after the colon' : MISSING_COLON);
    case 'MISSING_CHAR':
      return lost(missing(message, text.slice(offset)));
    case 'TAB_AS_INDENT':
      return lost('a tab indents this line; indent with spaces');
    case 'BAD_INDENT':
      return lost(badIndent(message, before, text.slice(offset)));
    case 'BAD_SCALAR_START':
      return local(needsQuotes(char));
    case 'BAD_ALIAS':
      return message.includes('empty') ? local(needsQuotes(char)) : lost(message);
    case 'TAG_RESOLVE_FAILED':
      return local('this tag is unknown; remove it, or put a text that starts with "!" in quotes');
    case 'BAD_DQ_ESCAPE':
      return local('a backslash in double quotes starts an escape; write "\\\\" for a backslash, or use single quotes');
    case 'MULTIPLE_DOCS':
      return lost('"---" starts a second document; the file must be one');
    case 'UNEXPECTED_TOKEN':
      return lost(unexpected(message, before, char));
    default:
      return lost(message);
  }
}

function local(message: string): SyntaxFault {
  return { message, isLocal: true };
}

function lost(message: string): SyntaxFault {
  return { message, isLocal: false };
}

/** Whether there is a `: ` between the offset and the end of its line. */
function colonFollows(text: string, offset: number): boolean {
  const [line = ''] = text.slice(offset).split(/\r?\n| #/, 1);
  return /:(\s|$)/.test(line);
}

function colonInText(before: string): string {
  return `a text that contains ": " must be in quotes or in a block ("${keyOf(before)}: |"); another key needs its own line`;
}

function keyBelowText(before: string): string {
  return (
    `a key follows, indented below this text; align it with "${keyOf(before)}", ` +
    `or write the text in a block ("${keyOf(before)}: |")`
  );
}

/** The key at the start of the last line, or `key` if it has none. */
function keyOf(before: string): string {
  return /^[ -]*(\w[\w-]*):/.exec(before.slice(before.lastIndexOf('\n') + 1))?.[1] ?? 'key';
}

function needsQuotes(char: string): string {
  return `a text that starts with "${char}" must be in quotes`;
}

function missing(message: string, rest: string): string {
  const closing = /closing ("|')quote/.exec(message) ?? /end with a ([\]}])$/.exec(message);
  if (closing?.[1] !== undefined) return unclosed(closing[1]);
  if (message.startsWith('Implicit map keys'))
    return /^[\w-]+:\S/.test(rest) ? 'a space is missing after the colon' : MISSING_COLON;
  if (message.startsWith('Missing , ')) return '"," or ": " is missing between two entries of { } or [ ]';
  if (message.startsWith('Comments')) return 'a space is missing before the "#" of the comment';
  return message;
}

function badIndent(message: string, before: string, rest: string): string {
  const closing = /end with a ([\]}])$/.exec(message)?.[1];
  if (closing !== undefined) return `${unclosed(closing)}, or indented less than the key`;
  if (message.startsWith('All mapping')) return followsItem(before, rest) ? 'a list item must start with "- "' : OF_KEYS;
  return message;
}

/** Whether the line before starts with a list item at the same column. */
function followsItem(before: string, rest: string): boolean {
  const last = before.trimEnd().split('\n').at(-1) ?? '';
  const column = rest.search(/[^ ]/);
  return last.slice(0, column).trim() === '' && last.startsWith('- ', column);
}

function unclosed(char: string): string {
  return `the closing ${char === '"' ? `'"'` : `"${char}"`} is missing`;
}

function unexpected(message: string, before: string, char: string): string {
  if (/(^|\s)[|>][-+\d]*\s+$/.test(before)) return 'the text of a block must start on the line after "|"';
  if (message.includes('on same line with key')) return 'a list item ("- ") must start on a line below its key';
  if (/^[}\]]$/.test(char)) return `"${char}" closes nothing; remove it`;
  if (/"\s*$/.test(before))
    return String.raw`text follows a closing quote; close the quote before it, or write \" for a quote inside double quotes`;
  if (/'\s*$/.test(before))
    return "text follows a closing quote; close the quote before it, or write '' for a quote inside single quotes";
  return message;
}
