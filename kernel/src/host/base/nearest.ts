/**
 * Finds the candidate that a mistyped word most likely means, or undefined if none is near. Letter
 * case, `-` and `_` are ignored: `base_url` finds `baseUrl`. One typing error is allowed for every
 * three characters; on a tie, the first wins.
 *
 * @public
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const plain = normalize(word);
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const other = normalize(candidate);
    const slips = distance(plain, other);
    const allowed = Math.max(1, Math.floor(Math.max(plain.length, other.length) / 3));
    if (slips <= allowed && slips < Math.min(fewest, other.length)) {
      best = candidate;
      fewest = slips;
    }
  }
  return best;
}

/**
 * Ends a message about an unknown word: `, did you mean "name"?`, or a list of the known words, or
 * nothing if there are none.
 *
 * @public
 */
export function suggestion(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  if (near !== undefined) return `, did you mean "${near}"?`;
  return known.length > 0 ? `; known: ${known.map((name) => `"${name}"`).join(', ')}` : '';
}

/** Words that people know for a name from elsewhere, by that name. */
export type Synonyms = Readonly<Record<string, readonly string[]>>;

/** Finds the name that a word is a synonym of. Letter case, `-` and `_` are ignored. */
export function synonymOf(word: string, names: readonly string[], synonyms: Synonyms): string | undefined {
  const plain = normalize(word);
  return names.find((name) => Object.hasOwn(synonyms, name) && synonyms[name]?.some((other) => normalize(other) === plain));
}

function normalize(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, '');
}

/** Counts typing errors between words: inserted, missing, changed or swapped characters. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let least = Math.min(change, (last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(least);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
