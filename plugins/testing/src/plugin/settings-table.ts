import type { JsonSchema } from '@plugboard/kernel';

/** One option of a schema, at any depth. */
interface Option {
  /** Its path: `drain`, `project.claim`, `tokens[].name`, `headers.*`. */
  readonly name: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
}

/**
 * Every option of a schema, outer ones first. An option that several branches of a choice share
 * appears once.
 */
export function optionsOf(schema: JsonSchema): readonly Option[] {
  const options = new Map<string, Option>();
  collect(schema, '', options);
  return [...options.values()];
}

function collect(schema: JsonSchema, place: string, options: Map<string, Option>): void {
  for (const [key, option] of Object.entries(schema.properties ?? {})) {
    const name = place === '' ? key : `${place}.${key}`;
    if (!options.has(name)) options.set(name, { name, schema: option, required: schema.required?.includes(key) ?? false });
    collect(option, name, options);
  }
  if (schema.items) collect(schema.items, `${place}[]`, options);
  if (typeof schema.additionalProperties === 'object') collect(schema.additionalProperties, `${place}.*`, options);
  for (const branch of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) collect(branch, place, options);
}

/**
 * The settings table for a plugin's README: Markdown with aligned columns, without a final newline.
 *
 * @experimental
 */
export function settingsTable(schema: JsonSchema): string {
  const options = optionsOf(schema);
  if (options.length === 0) return 'This plugin has no options.';
  const rows = options.map(({ name, schema, required }) =>
    [`\`${name}\``, typeOf(schema), defaultOf(schema, required), schema.description ?? ''].map(cell),
  );
  rows.unshift(['option', 'type', 'default', 'meaning']);
  const widths = [0, 1, 2, 3].map((column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const lines = rows.map((row) => line(row.map((text, column) => text.padEnd(widths[column] ?? 0))));
  lines.splice(1, 0, line(widths.map((width) => '-'.repeat(width))));
  return lines.join('\n');
}

function cell(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|');
}

function defaultOf(schema: JsonSchema, required: boolean): string {
  if (schema.default !== undefined) return code(schema.default);
  return required ? 'required' : 'none';
}

/** A value as written in the file. */
function code(value: unknown): string {
  return `\`${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}\``;
}

function typeOf(schema: JsonSchema): string {
  return `${kindOf(schema)}${boundsOf(schema)}${schema.secret ? ', secret' : ''}`;
}

function kindOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum) return schema.enum.map(code).join(' or ');
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches && schema.type === undefined) return branches.map(typeOf).join(' or ');
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  switch (schema.type) {
    case 'string':
      return schema.format === 'url' ? 'URL' : (schema.format ?? 'string');
    case 'array':
      return schema.items ? `list of ${plural(kindOf(schema.items))}` : 'list';
    case 'object':
      return typeof schema.additionalProperties === 'object' ? `map of ${plural(kindOf(schema.additionalProperties))}` : 'object';
    default:
      return String(schema.type ?? 'any');
  }
}

/** `string` → `strings`. A choice of words (`` `a` or `b` ``) is unchanged. */
function plural(kind: string): string {
  return /^[a-zA-Z]+$/.test(kind) ? `${kind}s` : kind;
}

function boundsOf({ minimum, maximum, exclusiveMinimum }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) return `, ${minimum} to ${maximum}`;
  if (minimum !== undefined) return `, at least ${minimum}`;
  if (exclusiveMinimum !== undefined) return `, more than ${exclusiveMinimum}`;
  return maximum === undefined ? '' : `, at most ${maximum}`;
}
