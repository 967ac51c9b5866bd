import { createRequire } from 'node:module';
import { join } from 'node:path';

const { name, version } = createRequire(import.meta.url)('../../../package.json') as { name: string; version: string };

/** This package. */
export const KERNEL = Object.freeze({ name, version, path: join(import.meta.dirname, '../../..') });
