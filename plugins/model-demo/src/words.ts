/** Words that do not identify a tool. */
const STOP_WORDS = new Set(
  (
    'a about all am an and any are as at be by can could current currently did do does fetch for from get give has have he her here his how i if in ' +
    'into is it its let lookup make may me more my need new no not now of off on one or our out over please s say she should show so some ' +
    'tell t than that the their them then there these they this those to up us use used uses using want was we were what when where ' +
    'which who why will with would you your return returns'
  ).split(' '),
);

/** The words of a text without stop words, in order, each reduced to its stem. */
export function meaningfulWords(text: string): readonly string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !STOP_WORDS.has(word)).map(stem);
}

/** A tool's name as people write it in the configuration: `files/read_text_file`. */
export function configuredName(name: string): string {
  return name.replace('__', '/');
}

/** A tool's own name as words: `read text file` for `files__readTextFile`. */
export function plainName(name: string): string {
  return spaced(name.slice(name.lastIndexOf('__') + 1))
    .toLowerCase()
    .trim();
}

/** The words of a tool's own name; if there are none (`weather__get`), those of the whole name. */
export function nameWords(name: string): readonly string[] {
  const own = meaningfulWords(plainName(name));
  return own.length > 0 ? own : fullNameWords(name);
}

/** The words of the whole name, including its entry's. */
export function fullNameWords(name: string): readonly string[] {
  return meaningfulWords(spaced(name));
}

/** A name as words: `read Text File` for `readTextFile`. */
export function spaced(name: string): string {
  return name.replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2').replaceAll('_', ' ');
}

function stem(word: string): string {
  const one = singular(word);
  return one.length > 5 && one.endsWith('ing') ? one.slice(0, -3) : one;
}

function singular(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word;
}
