import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { isObject } from '../json/json.js';
import { locate } from './resolve-package.js';

/** The version of the provider specification that this plugin speaks: that of AI SDK 7. */
export const SPECIFICATION = 'v4';

/** Says that a package has another specification, and what to do about it (AI-1). */
export function otherSpecification(shown: string, version: string): string {
  return (
    `${shown} has the specification ${version} of the AI SDK, and this plugin needs ${SPECIFICATION}; ` +
    'install the version of the package for AI SDK 7, usually with @latest'
  );
}

/** Finds a package of an older specification by the major version of its dependency. */
export function olderSpecification(provider: string, folder: string): string | undefined {
  const manifest = manifestAt(locate(provider, folder));
  if (manifest === undefined) return undefined;
  const { dependencies, peerDependencies } = manifest;
  const range = [dependencies, peerDependencies].map((list) => isObject(list) && list['@ai-sdk/provider']).find(Boolean);
  const [, major] = /^[\^~]?(\d+)\.[\w.-]+$/.exec(String(range)) ?? [];
  if (major === undefined || `v${major}` >= SPECIFICATION) return undefined;
  return otherSpecification(`${provider} ${manifest.version}`, `v${major}`);
}

/** The name of a module's package with its version. */
export function withVersion(provider: string, url: string): string {
  const manifest = manifestAt(packageJsonOf(url));
  return manifest !== undefined && provider.startsWith(`${manifest.name}`) ? `${provider} ${manifest.version}` : provider;
}

function packageJsonOf(url: string): string | undefined {
  try {
    return findPackageJSON(url);
  } catch {
    return undefined;
  }
}

function manifestAt(path: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (path === undefined) return undefined;
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isObject(manifest) ? manifest : undefined;
  } catch {
    return undefined;
  }
}
