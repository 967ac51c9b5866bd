import type { JsonSchema } from '@plugboard/kernel';

/** One option of a schema, at any depth. */
interface Option {
  /** Its path: `drain`, `project.claim`, `tokens[].name`, `headers.*`. */
  readonly name: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
}

/** Every option of a schema, outer ones first, each once even if several branches have it. */
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

/** The settings list for a README: Markdown without a final newline. @experimental */
export function settingsList(schema: JsonSchema): string {
  const options = optionsOf(schema);
  if (options.length === 0) return 'This plugin has no options.';
  return options.map(line).join('\n');
}

function line({ name, schema, required }: Option): string {
  const fallback = schema.default !== undefined ? `, default ${code(schema.default)}` : required ? ', required' : '';
  return `- \`${name}\` (${typeOf(schema)}${fallback}): ${schema.description ?? ''}`.replaceAll(/\s+/g, ' ').trimEnd();
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
