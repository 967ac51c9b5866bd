import type { Scope } from '@plugboard/kernel/contracts';
import type { Access } from './routes.js';

/** The scopes that a route names. */
export function scopesOf(access: Access): readonly Scope[] {
  if (typeof access === 'string') return [];
  if ('anyOf' in access) return access.anyOf;
  return 'orOpen' in access ? access.orOpen : access;
}
