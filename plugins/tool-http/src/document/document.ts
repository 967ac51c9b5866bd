import { DocumentFault, OperationFault } from '../errors/errors.js';
import { type Fields, fieldsOf, isFields } from './fields.js';

/** References that lead to each other before one is not followed any more. */
const MAX_CHAIN = 64;

/** An OpenAPI document, and what its references refer to. It is never changed. */
export class OpenApiDocument {
  readonly root: Fields;
  /** In 3.0, schemas have keywords of their own. */
  readonly is30: boolean;
  readonly #targets = new Map<string, unknown>();

  constructor(root: Fields) {
    this.root = root;
    this.is30 = String(root.openapi).startsWith('3.0');
  }

  /**
   * The object behind a reference, or the value itself.
   *
   * @throws OperationFault if the reference leads nowhere, or to itself.
   */
  resolve(value: unknown): Fields {
    let node = fieldsOf(value);
    for (let links = 0; typeof node.$ref === 'string'; links++) {
      if (links >= MAX_CHAIN) throw new OperationFault(`its reference ${shown(node.$ref)} leads to itself`);
      node = fieldsOf(this.target(node.$ref));
    }
    return node;
  }

  /**
   * What a reference, such as `#/components/schemas/Order`, refers to.
   *
   * @throws DocumentFault for another document, OperationFault if it is not there.
   */
  target(reference: string): unknown {
    if (this.#targets.has(reference)) return this.#targets.get(reference);
    if (!reference.startsWith('#')) {
      const cure = 'bundle it into one file, for example with `npx @redocly/cli bundle`';
      throw new DocumentFault(`refers to another document, ${shown(reference)}, which is never read: ${cure}`);
    }
    const found = stepsOf(reference).reduce<unknown>(
      (node, step) => ((isFields(node) || Array.isArray(node)) && Object.hasOwn(node, step) ? node[step as never] : undefined),
      this.root,
    );
    if (found === undefined) throw new OperationFault(`its reference ${shown(reference)} is not in the document`);
    this.#targets.set(reference, found);
    return found;
  }
}

/** The steps of a JSON pointer in a fragment (RFC 6901, section 6). */
function stepsOf(reference: string): readonly string[] {
  if (reference === '#') return [];
  const pointer = decoded(reference.slice(1));
  return pointer.startsWith('/')
    ? pointer
        .slice(1)
        .split('/')
        .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    : ['#anchor'];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function shown(reference: string): string {
  return JSON.stringify(reference.slice(0, 200));
}
