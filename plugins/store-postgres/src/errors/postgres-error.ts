import { BadRow } from '@plugboard/store-kit';
import { StoreError, type StoreErrorCode } from './store-error.js';

/** The connection failed, or the server behind it cannot write. Another connection may work. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  /** SQLSTATE, or the system's code. */
  readonly code: string | undefined;

  constructor(cause: unknown) {
    super(reasonOf(cause), { cause });
    this.code = codeOf(cause);
  }
}

/** By SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const LOST = /^(08|57P|25006|25P03|53300)/;
/**
 * Serialization failure, deadlock, lock timeout, statement timeout, and a row that another server
 * inserted at the same moment: the same may succeed later.
 */
const RETRYABLE = new Set(['40001', '40P01', '55P03', '57014', '23505']);

/** Wraps what a connection threw, unless it is PostgreSQL's answer to the statement. */
export function connectionError(error: unknown): unknown {
  const code = codeOf(error);
  const isAnswer = code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !LOST.test(code);
  return isAnswer || isPermanent(error) ? error : new ConnectionLost(error);
}

/** Whether the same may succeed on another connection or a moment later. */
export function isTemporary(error: unknown): boolean {
  return error instanceof ConnectionLost || RETRYABLE.has(codeOf(error) ?? '');
}

/** What the driver itself refuses: no password, no TLS. */
function isPermanent(error: unknown): boolean {
  return error instanceof Error && /^SASL|does not support SSL|client password/.test(error.message);
}

type Meaning = readonly [StoreErrorCode, (server: Server) => string];

/** What messages say of the database: nothing of it is secret. */
export interface Server {
  /** Host and port. */
  readonly address: string;
  readonly database: string;
  readonly user: string;
  readonly schema: string;
}

const CREDENTIALS: Meaning = [
  'refused',
  ({ address, user }) =>
    `PostgreSQL at ${address} refuses the user "${user}": check the user, the password and \`sslmode\` in \`url\``,
];
const MEANINGS: Readonly<Record<string, Meaning>> = {
  '28P01': CREDENTIALS,
  '28000': CREDENTIALS,
  '3D000': [
    'refused',
    ({ address, database }) => `PostgreSQL at ${address} has no database "${database}": create it, or correct \`url\``,
  ],
  '42501': [
    'refused',
    ({ database, user, schema }) =>
      `the user "${user}" may not use the schema "${schema}" of the database "${database}": as an administrator, run ` +
      `CREATE SCHEMA ${quoted(schema)} AUTHORIZATION ${quoted(user)}; or GRANT CREATE ON DATABASE ${quoted(database)} TO ${quoted(user)};`,
  ],
  '25006': ['read_only', ({ address }) => `PostgreSQL at ${address} is read-only: let \`url\` name the primary server`],
  '53100': [
    'disk_full',
    ({ address }) => `the disk of PostgreSQL at ${address} is full: free some space. What is stored can still be read`,
  ],
};

/** Turns an error of PostgreSQL or of a row into a `StoreError`. Returns other errors unchanged. */
export function explainError(error: unknown, server: Server): unknown {
  if (error instanceof StoreError) return error;
  if (error instanceof BadRow) return new StoreError('bad_row', `${server.schema}: ${error.message}`, { cause: error });
  const found = isPermanent(error) ? CREDENTIALS : MEANINGS[codeOf(error) ?? ''];
  if (found) return new StoreError(found[0], `${found[1](server)} (${reasonOf(error)})`, { cause: error });
  if (error instanceof ConnectionLost) {
    const message = `PostgreSQL at ${server.address} cannot be reached (${error.message}): check that it runs, and \`url\``;
    return new StoreError('unreachable', message, { cause: error });
  }
  if (codeOf(error) === undefined || !isSqlState(codeOf(error))) return error;
  return new StoreError('postgres', `PostgreSQL at ${server.address} failed (${codeOf(error)}: ${reasonOf(error)})`, {
    cause: error,
  });
}

/** A name as a statement has it. */
function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function isSqlState(code = ''): boolean {
  return /^[0-9A-Z]{5}$/.test(code);
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** An error of several addresses has no message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
