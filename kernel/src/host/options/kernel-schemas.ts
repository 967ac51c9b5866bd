import type { CompiledSchema } from './compiled-schema.js';

/** The kernel's own schemas, compiled. The build replaces this file: without it, there are none. */
export const KERNEL_SCHEMAS: readonly CompiledSchema[] = [];
