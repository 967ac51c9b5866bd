const ANNOTATION = 'x-mcp-header';
/** A name of a header (RFC 9110). */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
/** Depth of a schema beyond which it is refused. */
const MAX_DEPTH = 100;

/**
 * Finds a mistake in the `x-mcp-header` annotations of a tool, which name the headers that repeat
 * arguments (SEP-2243): on properties of a primitive type, each name once.
 *
 * @returns the reason not to offer the tool; undefined if there is none.
 */
export function annotationFault(inputSchema: unknown): string | undefined {
  const names = new Set<string>();
  const visit = (node: unknown, isProperty: boolean, depth: number): string | undefined => {
    if (typeof node !== 'object' || node === null) return undefined;
    if (depth > MAX_DEPTH) return 'its inputSchema is nested too deeply';
    const schema = node as Readonly<Record<string, unknown>>;
    if (Object.hasOwn(schema, ANNOTATION)) {
      const name = schema[ANNOTATION];
      if (!isProperty) return `it has ${ANNOTATION} elsewhere than on a property`;
      if (typeof name !== 'string' || !TOKEN.test(name)) return `its ${ANNOTATION} is not the name of a header`;
      if (!TYPES.has(schema.type)) return `its ${ANNOTATION} "${name}" is on a property that is not a string, integer or boolean`;
      if (names.has(name.toLowerCase())) return `its ${ANNOTATION} "${name}" is there twice`;
      names.add(name.toLowerCase());
    }
    for (const [key, value] of Object.entries(schema)) {
      if (DATA.has(key) || typeof value !== 'object' || value === null) continue;
      const isMap = key === 'properties';
      const children = isMap || MAPS.has(key) || Array.isArray(value) ? Object.values(value) : [value];
      for (const child of children) {
        const fault = visit(child, isMap && (isProperty || depth === 0), depth + 1);
        if (fault !== undefined) return fault;
      }
    }
    return undefined;
  };
  return visit(inputSchema, false, 0);
}

/** Keywords whose values are not schemas. */
const DATA: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples', 'required', 'type']);
/** Keywords whose values map names to schemas. */
const MAPS: ReadonlySet<string> = new Set(['patternProperties', 'dependentSchemas', '$defs', 'definitions']);
