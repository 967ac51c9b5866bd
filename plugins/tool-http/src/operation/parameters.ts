import type { OpenApiDocument } from '../document/document.js';
import { type Fields, fieldsOf, listOf, textOf } from '../document/fields.js';
import type { Operation } from '../document/operations.js';

const PLACES = ['path', 'query', 'header', 'cookie', 'querystring'] as const;
export type Place = (typeof PLACES)[number];

/** A parameter of an operation, with the defaults of its style filled in. */
export interface Parameter {
  readonly name: string;
  readonly in: Place;
  readonly required: boolean;
  readonly style: string;
  readonly explode: boolean;
  readonly allowReserved: boolean;
  /** The type of a parameter with `content`. */
  readonly mediaType: string | undefined;
  readonly schema: Fields;
  readonly description: unknown;
}

/** Headers that are not the model's to set: OpenAPI ignores the first three, the rest frame it. */
const NOT_ARGUMENTS: ReadonlySet<string> = new Set([
  ...['accept', 'content-type', 'authorization', 'host', 'content-length', 'transfer-encoding', 'connection'],
  ...['keep-alive', 'upgrade', 'te', 'trailer', 'expect', 'proxy-authorization', 'proxy-connection', 'cookie'],
]);

const STYLES: Readonly<Record<Place, string>> = {
  path: 'simple',
  query: 'form',
  header: 'simple',
  cookie: 'form',
  querystring: 'form',
};

/**
 * The parameters that a call may set, those of the path included, in the document's order. What the
 * operator's headers set and what carries a credential is not among them (OAS-9).
 *
 * @param ownHeaders the operator's, in lower case.
 */
export function parametersOf(
  document: OpenApiDocument,
  { pathItem, fields, path }: Operation,
  ownHeaders: ReadonlySet<string>,
): readonly Parameter[] {
  const found = new Map<string, Parameter>();
  for (const value of [...listOf(pathItem.parameters), ...listOf(fields.parameters)]) {
    const parameter = parameterOf(document.resolve(value));
    if (parameter) found.set(`${parameter.in} ${parameter.name}`, parameter);
  }
  const steps = namesIn(path);
  for (const name of steps) if (!found.has(`path ${name}`)) found.set(`path ${name}`, implied(name));
  const credentials = credentialsOf(document);
  const inPath = new Set(steps);
  return [...found.values()].filter((parameter) => {
    const name = parameter.name.toLowerCase();
    if (parameter.in === 'path') return inPath.has(parameter.name);
    if (credentials.has(`${parameter.in} ${parameter.in === 'header' ? name : parameter.name}`)) return false;
    if (parameter.in === 'header') return !NOT_ARGUMENTS.has(name) && !ownHeaders.has(name);
    return parameter.in !== 'cookie' || !ownHeaders.has('cookie');
  });
}

/** The names between braces in a path. */
export function namesIn(path: string): readonly string[] {
  return Array.from(path.matchAll(/\{([^{}]+)\}/g), ([, name = '']) => name);
}

function parameterOf(fields: Fields): Parameter | undefined {
  const place = PLACES.find((place) => place === fields.in);
  const name = textOf(fields.name) ?? (place === 'querystring' ? 'querystring' : undefined);
  if (!place || name === undefined) return undefined;
  const [mediaType, content] = Object.entries(fieldsOf(fields.content))[0] ?? [];
  const style = textOf(fields.style) ?? STYLES[place];
  return {
    name,
    in: place,
    required: place === 'path' || fields.required === true,
    style,
    explode:
      typeof fields.explode === 'boolean' ? fields.explode : style === 'form' || style === 'cookie' || style === 'deepObject',
    allowReserved: fields.allowReserved === true,
    mediaType,
    schema: fieldsOf(mediaType === undefined ? fields.schema : fieldsOf(content).schema),
    description: fields.description,
  };
}

/** Documents often do not describe what the path has. */
function implied(name: string): Parameter {
  const schema = { type: 'string' };
  const description = undefined;
  const style = STYLES.path;
  return {
    name,
    in: 'path',
    required: true,
    style,
    explode: false,
    allowReserved: false,
    mediaType: undefined,
    schema,
    description,
  };
}

/** The places of API keys, as `header x-api-key`. */
function credentialsOf(document: OpenApiDocument): ReadonlySet<string> {
  const schemes = Object.values(fieldsOf(fieldsOf(document.root.components).securitySchemes));
  return new Set(
    schemes.flatMap((scheme) => {
      const { type, in: place, name } = document.resolve(scheme);
      if (type !== 'apiKey' || typeof name !== 'string') return [];
      return [`${String(place)} ${place === 'header' ? name.toLowerCase() : name}`];
    }),
  );
}
