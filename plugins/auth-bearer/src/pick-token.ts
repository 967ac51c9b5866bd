import { CommandError } from '@plugboard/kernel';
import { statusOf, type TokenRecord } from './token-record.js';

/** The tokens of a name that are neither revoked nor expired. Two projects may have one each, and so may an old token and the one that takes its place. */
export function activeNamed(records: readonly TokenRecord[], name: string, now: number): readonly TokenRecord[] {
  return records.filter((record) => record.name === name && statusOf(record, now) === 'active');
}

/**
 * The token of that id, whatever its state, or the one active token of that name.
 *
 * @param project whose token it is, where only a name is given.
 * @throws CommandError where there is none, or several.
 */
export function pickToken(records: readonly TokenRecord[], which: string, project: string | undefined, now: number): TokenRecord {
  const byId = records.find(({ id }) => id === which);
  if (byId !== undefined) return byId;
  const [found, ...others] = activeNamed(records, which, now).filter(
    (record) => project === undefined || record.project === project,
  );
  if (found === undefined) {
    throw new CommandError(`there is no active token "${which}" in the tokens file; plugboard token list shows what there is`);
  }
  if (others.length === 0) return found;
  const all = [found, ...others].map(
    ({ id, hint, project, createdAt }) => `${id} (${hint}, project ${project}, since ${createdAt})`,
  );
  throw new CommandError(`there are several tokens "${which}": ${all.join(', ')}; say which, by its id`);
}

/** `token tok_… ("ci" of project acme)`. */
export function titleOf({ id, name, project }: Pick<TokenRecord, 'id' | 'name' | 'project'>): string {
  return `token ${id} ("${name}" of project ${project})`;
}
