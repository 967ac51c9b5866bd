import { createHash } from 'node:crypto';
import type { Tool } from '@plugboard/kernel';
import { OperationFault } from '../errors/errors.js';
import type { OpenApiDocument } from './document.js';
import { type Fields, fieldsOf, listOf, textOf } from './fields.js';

/** An operation of the document, before anything of it is converted. */
export interface Operation {
  /** Its tool's name: unique, and so is what is left of it at the model (OAS-4). */
  readonly name: string;
  /** In capitals. */
  readonly method: string;
  /** With `{parameters}`. */
  readonly path: string;
  readonly tags: readonly string[];
  readonly pathItem: Fields;
  readonly fields: Fields;
}

/** Reports an operation that is left out. */
export type OnSkip = (operation: string, reason: string) => void;

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'] as const;
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const MAX_NAME = 256;

/** The operations of a document, in its order. The second of two with one id is skipped. */
export function operationsOf(document: OpenApiDocument, onSkip: OnSkip): readonly Operation[] {
  const found: Operation[] = [];
  const ids = new Set<string>();
  for (const [path, item] of Object.entries(fieldsOf(document.root.paths))) {
    if (!path.startsWith('/')) continue; // an extension
    try {
      const pathItem = document.resolve(item);
      for (const [method, value] of methodsOf(pathItem)) {
        const fields = document.resolve(value);
        const id = textOf(fields.operationId)?.trim();
        const label = id ?? `${method} ${path}`;
        const reason = faultOf(method, path, id, ids);
        if (reason !== undefined) {
          onSkip(label, reason);
          continue;
        }
        if (id !== undefined) ids.add(id);
        const tags = listOf(fields.tags).filter((tag) => typeof tag === 'string');
        found.push({ name: id ?? '', method, path, tags, pathItem, fields });
      }
    } catch (error) {
      if (!(error instanceof OperationFault)) throw error;
      onSkip(path, error.message);
    }
  }
  return named(found);
}

/** What a second call does: nothing, the same, or something again (OAS-13). */
export function effectOf(method: string): NonNullable<Tool['effect']> {
  if (['GET', 'HEAD', 'OPTIONS', 'QUERY'].includes(method)) return 'read';
  return ['PUT', 'DELETE'].includes(method) ? 'idempotent' : 'write';
}

function* methodsOf(pathItem: Fields): Iterable<readonly [method: string, value: unknown]> {
  for (const method of METHODS) if (pathItem[method] !== undefined) yield [method.toUpperCase(), pathItem[method]];
  for (const [method, value] of Object.entries(fieldsOf(pathItem.additionalOperations))) yield [method.toUpperCase(), value];
}

function faultOf(method: string, path: string, id: string | undefined, ids: ReadonlySet<string>): string | undefined {
  if (!TOKEN.test(method) || method === 'CONNECT') return 'its method cannot be sent';
  if (path.split('/').some((step) => /^(?:\.|%2e){1,2}$/i.test(step))) return 'its path has a step "." or ".."';
  if (id === undefined) return undefined;
  if (id.length > MAX_NAME) return `its operationId has more than ${MAX_NAME} characters`;
  return ids.has(id) ? 'an earlier operation has the same operationId' : undefined;
}

/**
 * Gives operations without an id a name, and keeps names apart that would be the same at the model:
 * all but one that is there as it is get a hash of what they stand for, so that the order of the
 * document does not matter.
 */
function named(operations: readonly Operation[]): readonly Operation[] {
  const names = operations.map(({ name, method, path }) => (name === '' ? nameOf(method, path) : name));
  const owners = new Map<string, number>();
  for (const name of names) owners.set(plain(name), (owners.get(plain(name)) ?? 0) + 1);
  return operations.map((operation, index) => {
    const name = names[index] ?? '';
    const isAlone = owners.get(plain(name)) === 1;
    if (isAlone || operation.name === plain(name)) return { ...operation, name };
    return { ...operation, name: `${plain(name)}_${hashOf(`${operation.method} ${operation.path} ${name}`)}` };
  });
}

/** `get_orders_id` of `GET /orders/{id}`. */
function nameOf(method: string, path: string): string {
  return `${method.toLowerCase()}${path}`
    .replace(/[^A-Za-z0-9-]+/g, '_')
    .replace(/_$/, '')
    .slice(0, MAX_NAME);
}

/** What the runtime leaves of a name at the model. */
function plain(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_');
}

/** Eight hexadecimal digits that stand for a text. */
function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}
