import { type ComposeOptions, compose, type HostServer, layout } from '@plugboard/kernel/internal';
import { diagnosis } from '../diagnosis/diagnosis.js';

/**
 * Composes the server of a configuration file, and explains the accidents of its plugins.
 *
 * @throws ConfigError with all mistakes; with `partial` only if the file cannot be read.
 */
export function composeServer(options: Omit<ComposeOptions, 'layout' | 'diagnosis'>): Promise<HostServer> {
  return compose({ ...options, layout, diagnosis });
}
