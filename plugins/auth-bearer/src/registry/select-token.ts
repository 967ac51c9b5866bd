import { CommandError } from '@plugboard/kernel/contracts';
import { statusOf, type TokenRecord } from '../tokens/token-record.js';

/** The active tokens of a name: of other projects, or an old token and its successor. */
export function activeTokens(records: readonly TokenRecord[], name: string, now: number): readonly TokenRecord[] {
  return records.filter((record) => record.name === name && statusOf(record, now) === 'active');
}

/**
 * Returns the token with an id, whatever its status, or the only active token with a name.
 *
 * @param project narrows a name to one project.
 * @throws CommandError if there is none, or more than one.
 */
export function selectToken(
  records: readonly TokenRecord[],
  idOrName: string,
  project: string | undefined,
  now: number,
): TokenRecord {
  const byId = records.find(({ id }) => id === idOrName);
  if (byId !== undefined) return byId;
  const [found, ...others] = activeTokens(records, idOrName, now).filter(
    (record) => project === undefined || record.project === project,
  );
  if (found === undefined) {
    throw new CommandError(`there is no active token "${idOrName}"; "plugboard token list" shows all tokens`);
  }
  if (others.length === 0) return found;
  const all = [found, ...others].map(
    ({ id, hint, project, createdAt }) => `${id} (${hint}, project ${project}, created ${createdAt})`,
  );
  throw new CommandError(`several active tokens are named "${idOrName}": ${all.join(', ')}. Use the id`);
}

/** Names a token in messages: `token tok_… ("ci" of project acme)`. */
export function describeToken({ id, name, project }: Pick<TokenRecord, 'id' | 'name' | 'project'>): string {
  return `token ${id} ("${name}" of project ${project})`;
}
