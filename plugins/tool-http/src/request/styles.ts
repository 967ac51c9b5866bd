import type { ParameterPlan } from '../operation/compile-operation.js';
import { encode, encodeReserved } from './encode.js';

/** How a value is written (OAS-11). */
export type Style = Pick<ParameterPlan, 'name' | 'style' | 'explode' | 'allowReserved' | 'mediaType'>;

type Encode = (text: string) => string;

/** The value in a path: `5`, `.5` (label) or `;id=5` (matrix). */
export function pathText(style: Style, value: unknown): string {
  if (style.mediaType !== undefined) return encode(contentText(value));
  const { name, explode } = style;
  if (style.style === 'label') return `.${listed(value, explode, explode ? '.' : ',', encode)}`;
  if (style.style !== 'matrix') return listed(value, explode, ',', encode);
  if (explode && isList(value)) return value.map((item) => `;${encode(name)}=${encode(scalarText(item))}`).join('');
  if (explode && isMap(value))
    return entriesOf(value)
      .map(([key, item]) => `;${encode(key)}=${encode(item)}`)
      .join('');
  return `;${encode(name)}=${listed(value, false, ',', encode)}`;
}

/** The value in a header: `a,b`. */
export function headerText(style: Style, value: unknown): string {
  if (style.mediaType !== undefined) return contentText(value);
  return listed(value, style.explode, ',', (text) => text);
}

/** The pairs of a cookie: `id=5` and `color=blue`. */
export function cookiePairs(style: Style, value: unknown): readonly string[] {
  return pairsOf(style, value, style.style === 'cookie' ? (text) => text : encode);
}

/** The pairs of a query, or of a form's field, joined by `&`; empty if there is nothing to send. */
export function queryText(style: Style, value: unknown): string {
  return pairsOf(style, value, style.allowReserved ? encodeReserved : encode).join('&');
}

function pairsOf({ name, style, explode, mediaType }: Style, value: unknown, encoded: Encode): readonly string[] {
  const key = encode(name);
  if (mediaType !== undefined) return [`${key}=${encoded(contentText(value))}`];
  if (style === 'deepObject' && typeof value === 'object') return deepPairs(name, value, encoded);
  if (isList(value)) {
    if (value.length === 0) return [];
    if (explode) return value.map((item) => `${key}=${encoded(scalarText(item))}`);
    return [`${key}=${value.map((item) => encoded(scalarText(item))).join(delimiterOf(style))}`];
  }
  if (!isMap(value)) return [`${key}=${encoded(scalarText(value))}`];
  const entries = entriesOf(value);
  if (entries.length === 0) return [];
  if (explode) return entries.map(([key, item]) => `${encode(key)}=${encoded(item)}`);
  return [`${key}=${entries.flat().map(encoded).join(delimiterOf(style))}`];
}

/** `filter[color]=blue`, at any depth: `filter[sizes][0]=5`. */
function deepPairs(name: string, value: unknown, encoded: Encode): readonly string[] {
  if (typeof value !== 'object' || value === null) return value === null ? [] : [`${encode(name)}=${encoded(scalarText(value))}`];
  return Object.entries(value).flatMap(([key, item]) => deepPairs(`${name}[${key}]`, item, encoded));
}

function delimiterOf(style: string): string {
  if (style === 'spaceDelimited') return '%20';
  return style === 'pipeDelimited' ? '%7C' : ',';
}

/** `blue,black`, `R,100,G,200` or, exploded, `R=100,G=200`. */
function listed(value: unknown, explode: boolean, separator: string, encoded: Encode): string {
  if (isList(value)) return value.map((item) => encoded(scalarText(item))).join(separator);
  if (!isMap(value)) return encoded(scalarText(value));
  const entries = entriesOf(value).map(([key, item]) => [encoded(key), encoded(item)] as const);
  return explode ? entries.map(([key, item]) => `${key}=${item}`).join(separator) : entries.flat().join(separator);
}

/** A property that is null is not sent. */
function entriesOf(value: object): readonly (readonly [key: string, text: string])[] {
  return Object.entries(value)
    .filter(([, item]) => item !== null)
    .map(([key, item]) => [key, scalarText(item)]);
}

/** OpenAPI defines no form for lists and objects inside of others: they are JSON. */
function scalarText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** A parameter with `content` is JSON, or the text itself. */
function contentText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
