import { type ComposeOptions, compose, type HostServer, layout } from '@plugboard/kernel/internal';
import { diagnosis } from '../diagnosis/diagnosis.js';

/** Composes the server of a file, and explains its plugins' accidents. @throws ConfigError */
export function composeServer(options: Omit<ComposeOptions, 'layout' | 'diagnosis'>): Promise<HostServer> {
  return compose({ ...options, layout, diagnosis });
}
