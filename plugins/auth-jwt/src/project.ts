import { DEFAULT_PROJECT } from '@plugboard/kernel/contracts';
import type { JwtConfig } from './config.js';
import { NO_PROJECT_CLAIM, UNKNOWN_PROJECT, UNMAPPED } from './errors.js';

/** Where the plugin's `register` leaves the projects of the file. */
export const PROJECTS = Symbol('auth-jwt.projects');

/**
 * The project that checked claims stand for, or why there is none.
 *
 * With a prefix the issuer makes names of projects, and where tenants choose their own names in it, so do they. So `default`, whose tokens reach every
 * agent and raw model, is given by a map alone, which the operator wrote.
 *
 * @param projects what stands under `projects` in the file.
 */
export function projectOf(
  claims: Readonly<Record<string, unknown>>,
  { claim, map, prefix = '' }: JwtConfig['project'],
  projects: readonly string[],
): { readonly project: string } | { readonly refused: string } {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (typeof value !== 'string' || value === '') return { refused: NO_PROJECT_CLAIM };
  const project = map === undefined ? prefix + value : Object.hasOwn(map, value) ? map[value] : undefined;
  if (project === undefined) return { refused: UNMAPPED };
  const known = project === DEFAULT_PROJECT ? map !== undefined : projects.includes(project);
  return known ? { project } : { refused: UNKNOWN_PROJECT };
}
