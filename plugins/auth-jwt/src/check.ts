import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import { DEFAULT_PROJECT, suggestion } from '@plugboard/kernel/contracts';
import { addressFault } from './address.js';
import type { JwtConfig } from './config.js';

/** Finds faults in the options beyond those of the schema. */
export function checkConfig({ issuer, jwksUri, project }: JwtConfig, { entries }: CheckContext): ConfigProblem[] {
  return [...addressProblems(issuer, jwksUri), ...projectProblems(project, entries('projects'))];
}

function addressProblems(issuer: string, jwksUri: string | undefined): ConfigProblem[] {
  if (jwksUri !== undefined) {
    const fault = addressFault(jwksUri);
    return fault === undefined ? [] : [{ path: ['jwksUri'], message: fault }];
  }
  const fault = /[?#]/.test(issuer) ? 'must have no query and no fragment' : addressFault(issuer);
  if (fault === undefined) return [];
  return [{ path: ['issuer'], message: `${fault}; for an issuer with another name, set jwksUri to the address of its keys` }];
}

function projectProblems({ map, prefix }: JwtConfig['project'], projects: readonly string[]): ConfigProblem[] {
  const path = ['project'];
  if (map !== undefined && prefix !== undefined) return [{ path, message: 'takes either map or prefix, not both' }];
  if (map === undefined && prefix === undefined) {
    return [
      {
        path,
        message: 'needs map, from values to projects, or prefix, which is put before the value to make the name of the project',
      },
    ];
  }
  if (prefix !== undefined && !projects.some((name) => name.startsWith(prefix) && name !== DEFAULT_PROJECT)) {
    const what = prefix === '' ? 'there are no projects' : `no project begins with "${prefix}"`;
    return [{ path: [...path, 'prefix'], message: `${what}, so every token would be refused` }];
  }
  const known = [DEFAULT_PROJECT, ...projects];
  return Object.entries(map ?? {})
    .filter(([, name]) => !known.includes(name))
    .map(([value, name]) => ({
      path: [...path, 'map', value],
      message: `unknown project "${name}"${suggestion(name, known)}`,
    }));
}
