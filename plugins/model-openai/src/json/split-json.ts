/** Splits several JSON objects or arrays in a row. Undefined if the text is anything else. */
export function splitJson(text: string): readonly string[] | undefined {
  const values: string[] = [];
  let start = -1;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '"' && depth > 0) {
      i = endOfString(text, i);
    } else if (char === '{' || char === '[') {
      if (depth === 0) start = i;
      depth += 1;
    } else if (char === '}' || char === ']') {
      depth -= 1;
      if (depth < 0) return undefined;
      if (depth === 0) values.push(text.slice(start, i + 1));
    } else if (depth === 0 && !/\s/.test(char ?? '')) return undefined;
  }
  return depth === 0 && values.length > 0 && values.every(isJson) ? values : undefined;
}

/** The index of the closing quote, or of the last character. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '"') return i;
  }
  return text.length;
}

function isJson(text: string): boolean {
  return parseJson(text) !== undefined;
}

/** Parses a JSON text. Returns undefined if it is not valid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
