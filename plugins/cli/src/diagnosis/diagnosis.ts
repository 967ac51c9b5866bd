import type { Diagnosis } from '@plugboard/kernel/internal';
import { explainImport } from './explain-import.js';
import { runWithin } from './run-within.js';

/** Explains the accidents of plugin authors where the host itself cannot. */
export const diagnosis: Diagnosis = { runWithin, explainImport };
