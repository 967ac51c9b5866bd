import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The fields of a `package.json` that the loader reads. */
interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly exports?: unknown;
  readonly main?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Reads the `package.json` of a folder. Undefined if it is missing or unreadable. */
export function readManifest(folder: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  } catch {
    return undefined;
  }
}

/** Reads the `package.json` of a module's package. Nested files without a version are skipped. */
export function packageOf(path: string): (Manifest & { readonly folder: string }) | undefined {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const manifest = readManifest(folder);
    if (manifest?.version !== undefined) return { ...manifest, folder };
    if (folder === dirname(folder)) return undefined;
  }
}
