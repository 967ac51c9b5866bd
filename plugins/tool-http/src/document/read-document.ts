import { CORE_SCHEMA, load, mergeTag, YAMLException } from 'js-yaml';
import { DocumentFault } from '../errors/errors.js';
import { OpenApiDocument } from './document.js';
import { isFields } from './fields.js';

/** YAML 1.2, with `<<`, which documents use. */
const YAML = CORE_SCHEMA.withTags(mergeTag);

/** Bytes of a document (OAS-12). */
export const MAX_DOCUMENT = 32 * 2 ** 20;

/**
 * Reads an OpenAPI document, JSON or YAML (OAS-14).
 *
 * @throws DocumentFault if it is not a document of a supported version.
 */
export function readDocument(text: string): OpenApiDocument {
  const root = parsed(text);
  if (!isFields(root)) throw new DocumentFault('is not an OpenAPI document: it must be a map with `openapi` and `paths`');
  const { openapi, swagger } = root;
  if (swagger !== undefined && openapi === undefined)
    throw new DocumentFault('is Swagger 2.0; convert it to OpenAPI 3, for example with `npx swagger2openapi`');
  if (openapi === undefined) throw new DocumentFault('is not an OpenAPI document: it has no `openapi: 3.…` at its top');
  if (!/^3\.[012](?:\.|$)/.test(String(openapi)))
    throw new DocumentFault(`is of OpenAPI ${String(openapi).slice(0, 20)}; only 3.0, 3.1 and 3.2 are supported`);
  return new OpenApiDocument(root);
}

/** @throws DocumentFault if it is too large. */
export function assertSize(bytes: number): void {
  if (bytes > MAX_DOCUMENT)
    throw new DocumentFault(`is larger than ${MAX_DOCUMENT / 2 ** 20} MiB; make one with the operations that you need`);
}

/** JSON that is not valid is read as YAML, whose errors have a line. */
function parsed(text: string): unknown {
  const isJson = /^\s*\{/.test(text);
  try {
    if (isJson) return JSON.parse(text);
  } catch {
    // Its error is below.
  }
  try {
    return load(text, { schema: YAML });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw new DocumentFault('is nested too deeply');
    const { reason, mark } = error;
    const place = mark === undefined ? '' : ` (line ${mark.line + 1})`;
    throw new DocumentFault(`is not valid ${isJson ? 'JSON' : 'YAML'}: ${reason}${place}`);
  }
}
