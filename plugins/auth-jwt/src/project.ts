import { DEFAULT_PROJECT } from '@plugboard/kernel/contracts';
import type { JwtConfig } from './config.js';
import { NO_PROJECT_CLAIM, UNKNOWN_PROJECT, UNMAPPED } from './errors.js';

/**
 * Returns the project of checked claims, or the reason why there is none.
 *
 * With a prefix, the issuer chooses names of projects, and so do tenants that choose their own
 * names at the issuer. Therefore only a map, which the operator writes, can give `default`, whose
 * tokens reach every agent and raw model.
 *
 * @param projects the names under `projects` in the file.
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
