import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const { name, version } = createRequire(import.meta.url)('../../package.json') as { name: string; version: string };

/** This package, as errors and `plugboard plugins` name it. */
export const KERNEL = Object.freeze({ name, version, path: fileURLToPath(new URL('../..', import.meta.url)) });
