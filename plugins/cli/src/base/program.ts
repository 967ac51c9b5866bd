import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';

const file = findPackageJSON('..', import.meta.url) ?? '';
const { name, version } = JSON.parse(readFileSync(file, 'utf8')) as { name: string; version: string };

/** This package. */
export const PROGRAM = Object.freeze({ name, version, path: dirname(file) });
