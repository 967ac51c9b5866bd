import type { OpenApiDocument } from '../document/document.js';
import { type Fields, fieldsOf } from '../document/fields.js';
import { OperationFault } from '../errors/errors.js';

/** How an operation takes its body. */
export interface RequestBody {
  /** For `Content-Type`. */
  readonly mediaType: string;
  readonly isForm: boolean;
  readonly required: boolean;
  readonly schema: unknown;
  /** The styles of a form's fields. */
  readonly encoding: Fields;
  readonly description: unknown;
}

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = /^application\/(?:[\w.+-]{1,100}\+)?json$/;

/**
 * The body of an operation in a form that can be sent (OAS-6): JSON before a form.
 *
 * @returns undefined if it takes none. @throws OperationFault if it takes only others.
 */
export function bodyOf(document: OpenApiDocument, operation: Fields): RequestBody | undefined {
  if (operation.requestBody === undefined) return undefined;
  const { content, required, description } = document.resolve(operation.requestBody);
  const types = Object.entries(fieldsOf(content)).map(([name, value]) => ({ name, plain: plainType(name), value }));
  if (types.length === 0) return undefined;
  const chosen =
    types.find(({ plain }) => plain === 'application/json') ??
    types.find(({ plain }) => JSON_TYPE.test(plain)) ??
    types.find(({ plain }) => plain === FORM) ??
    types.find(({ plain }) => plain === '*/*' || plain === 'application/*');
  if (!chosen) {
    const names = types.map(({ plain }) => plain.slice(0, 100)).slice(0, 3);
    throw new OperationFault(`its body is ${names.join(' or ')}; only JSON and ${FORM} can be sent`);
  }
  const { schema, encoding } = document.resolve(chosen.value);
  return {
    mediaType: chosen.plain.includes('*') ? 'application/json' : chosen.plain,
    isForm: chosen.plain === FORM,
    required: required === true,
    schema,
    encoding: fieldsOf(encoding),
    description,
  };
}

/** Without `; charset=…`. */
function plainType(name: string): string {
  return (name.split(';', 1)[0] ?? '').trim().toLowerCase();
}
