import { type ComposeOptions, compose, type Diagnosis, type HostServer, layout } from '@plugboard/kernel/internal';
import { explainImport } from '../diagnosis/explain-import.js';
import { runWithin } from '../diagnosis/run-within.js';

/** Composes the server of a file, and explains its plugins' accidents. @throws ConfigError */
export function composeServer(options: Omit<ComposeOptions, 'layout' | 'diagnosis'>): Promise<HostServer> {
  return compose({ ...options, layout, diagnosis });
}

/** Explains the accidents of plugin authors where the host itself cannot. */
export const diagnosis: Diagnosis = { runWithin, explainImport };
