import { createRequire } from 'node:module';
import { join } from 'node:path';

const { name, version } = createRequire(import.meta.url)('../../../package.json') as { name: string; version: string };

/** This package, as errors and `plugboard plugins` name it. */
export const KERNEL = Object.freeze({ name, version, path: join(import.meta.dirname, '../../..') });
