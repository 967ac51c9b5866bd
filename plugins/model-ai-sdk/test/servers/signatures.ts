import { createHash } from 'node:crypto';

/** What a package adds by itself from request to request, and what is no part of the prefix. */
const NOT_SIGNED: ReadonlySet<string> = new Set(['cache_control', 'eager_input_streaming', 'cachePoint']);

/** Signs a thought over everything before it, for an account and a model. */
export function sign(account: unknown, model: unknown, prefix: unknown, thought: string): string {
  const json = JSON.stringify([account, model, prefix, thought], (key, value) => {
    if (NOT_SIGNED.has(key)) return undefined;
    return Array.isArray(value) ? value.filter((item) => !isCachePoint(item)) : value;
  });
  return createHash('sha256').update(json).digest('base64');
}

function isCachePoint(item: unknown): boolean {
  return typeof item === 'object' && item !== null && 'cachePoint' in item;
}
