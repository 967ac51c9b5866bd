import { type Fields, fieldsOf, listOf, textOf } from '../document/fields.js';
import type { Operation } from '../document/operations.js';
import { DocumentFault } from '../errors/errors.js';

/**
 * The address that requests of an operation begin with (OAS-9): `baseUrl`, otherwise the first
 * server of the operation, its path or the document.
 *
 * @param documentUrl where the document came from; relative addresses are relative to it.
 * @throws DocumentFault if there is none.
 */
export function serverOf(
  root: Fields,
  { pathItem, fields }: Pick<Operation, 'pathItem' | 'fields'>,
  baseUrl: string | undefined,
  documentUrl: string | undefined,
): URL {
  if (baseUrl !== undefined) return new URL(baseUrl);
  const [server] = [fields, pathItem, root].map(({ servers }) => listOf(servers)).find((list) => list.length > 0) ?? [];
  const address = filled(fieldsOf(server));
  const url = URL.parse(address, documentUrl);
  if (!url && !/^[a-z]+:/i.test(address)) throw new DocumentFault('names no server; set `baseUrl` to the address of the API');
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new DocumentFault(
      `names the server ${JSON.stringify(address.slice(0, 200))}, which is not an http or https URL; set \`baseUrl\``,
    );
  url.username = '';
  url.password = '';
  url.hash = '';
  return url;
}

/** The address with the defaults of its variables. */
function filled({ url, variables }: Fields): string {
  return (textOf(url) ?? '/').replace(/\{([^{}]+)\}/g, (whole, name: string) => {
    const known = fieldsOf(variables);
    const { default: preset } = fieldsOf(Object.hasOwn(known, name) ? known[name] : undefined);
    return preset === undefined ? whole : String(preset);
  });
}
