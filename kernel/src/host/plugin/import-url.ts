import { registerHooks } from 'node:module';

/** Marks the modules of an attempt to import a plugin again. */
const ATTEMPT = /\?attempt=\d+$/;

/** How often each module was rejected. Per process, as the modules that Node.js keeps. */
const rejections = new Map<string, number>();

/**
 * The URL to import a module by. Node.js keeps a module that has thrown, or has the wrong exports,
 * until the process ends; a module that was rejected before is imported under another URL.
 */
export function importUrl(url: string): string {
  const attempts = rejections.get(url);
  return attempts === undefined ? url : `${url}?attempt=${attempts + 1}`;
}

/** The module cannot be used: its next import reads its files again, as they are then. */
export function rejectModule(url: string): void {
  if (rejections.size === 0) registerHooks({ resolve: resolveAttempt });
  rejections.set(url, (rejections.get(url) ?? 0) + 1);
}

/** The files that a module imports by relative paths belong to the same attempt. */
const resolveAttempt: Parameters<typeof registerHooks>[0]['resolve'] = (specifier, context, next) => {
  const resolved = next(specifier, context);
  const [attempt] = ATTEMPT.exec(context.parentURL ?? '') ?? [];
  if (attempt === undefined || !/^\.\.?\//.test(specifier)) return resolved;
  return { ...resolved, url: resolved.url + attempt };
};
