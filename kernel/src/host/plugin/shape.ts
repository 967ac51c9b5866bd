import type { ExtensionPoint, MemberType } from './extension-point.js';

/** Says how a value differs from the shape of its extension point. Undefined if it does not. */
export function shapeMistake(value: unknown, { shape }: Pick<ExtensionPoint<unknown>, 'shape'>): string | undefined {
  if (shape === undefined) return undefined;
  if (shape === 'function') return typeof value === 'function' ? undefined : `it is ${typeName(value)}, not a function`;
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) {
    return `it is ${typeName(value)}, not an object with ${list(Object.keys(shape))}`;
  }
  for (const [key, type] of Object.entries(shape)) {
    const name = key.replace(/\?$/, '');
    const found = typeOf(Reflect.get(value, name));
    const isObject = type === 'object' && found === 'function';
    if (found === type || isObject || (found === 'undefined' && key.endsWith('?'))) continue;
    const wrong = found === 'undefined' ? 'is missing' : `is ${article(found)}`;
    return `its member "${name}" ${wrong}; it must be ${article(type)}`;
  }
  return undefined;
}

/** `a string`, `null`: what a value is, for a message. */
export function typeName(value: unknown): string {
  return article(typeOf(value));
}

function typeOf(value: unknown): MemberType | string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function article(type: string): string {
  if (type === 'undefined' || type === 'null') return type;
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}

function list(keys: readonly string[]): string {
  return keys
    .filter((key) => !key.endsWith('?'))
    .map((key) => `"${key}"`)
    .join(', ');
}
