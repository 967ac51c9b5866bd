interface ContentType {
  /** Lower case, without parameters: `application/json`. */
  readonly mediaType: string;
  /** Lower case, all of them. */
  readonly charsets: readonly string[];
}

/** Parses a Content-Type (RFC 9110, 8.3.1). Undefined if a parameter has no value. */
export function parseContentType(header: string): ContentType | undefined {
  const [mediaType = '', ...parameters] = header.split(';');
  const charsets: string[] = [];
  for (const parameter of parameters) {
    const [name = '', value] = parameter.trim().split('=');
    if (name === '') continue;
    if (value === undefined) return undefined;
    if (name.toLowerCase() === 'charset') charsets.push(unquoted(value).toLowerCase());
  }
  return { mediaType: mediaType.trim().toLowerCase(), charsets };
}

function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}
