import type { Clock } from '@plugboard/kernel';
import type { SessionId, SessionLease } from '@plugboard/kernel/contracts';
import type { StoreLimits } from '@plugboard/store-kit';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import { ANNA, DAY, MINUTE } from '../../../test/support/stored-turns.js';
import { Database, type DatabaseOptions } from '../src/database/database.js';
import { PostgresStore } from '../src/postgres-store.js';
import { realPostgres } from './real-postgres.js';

export * from '../../../test/support/stored-turns.js';

/** The clock of the machine. */
export const SYSTEM_CLOCK: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return { cancel: () => clearTimeout(timer), refresh: () => void timer.refresh() };
  },
};

/** Statements see a time that the test moves, and not that of PostgreSQL. */
class ClockedDatabase extends Database {
  readonly #now: () => number;

  constructor(options: DatabaseOptions) {
    super(options);
    this.#now = () => options.clock.now();
  }

  protected override named(text: string): string {
    return super.named(text).replaceAll(Database.NOW, `${this.#now()}::bigint`);
  }
}

export const NEVER = new AbortController().signal;

/** Puts a turn in line and gets its lease. */
export async function acquire({ shared }: PostgresStore, turnId: string, id: SessionId = ANNA): Promise<SessionLease> {
  const result = await shared.acquire(id, { turnId, maxAhead: 9, title: 'a question' }, NEVER);
  if (result.kind !== 'lease') throw new Error(`${turnId} got no lease: ${result.kind}`);
  return result.lease;
}

export interface StoreSettings extends Partial<StoreLimits> {
  clock?: Clock;
  url?: string;
  listenUrl?: string;
  schema?: string;
  poolSize?: number;
  lease?: number;
  timeout?: number;
  patience?: number;
}

let count = 0;

export function newSchema(): string {
  return `s${process.pid}_${++count}`;
}

const TABLES = [
  'turn',
  'session',
  'message',
  'record',
  'tombstone',
  'pending_call',
  'idempotency',
  'state',
  'usage',
  'replica',
  'rate',
  'hold',
  'interest',
  'live',
];

/** Empties a schema, which takes less than making one. */
export async function wipe(schema: string): Promise<void> {
  const { query } = await realPostgres();
  await query(TABLES.map((table) => `DELETE FROM "${schema}".${table}`).join(';'));
}

/** Ends the leases of servers that were killed or stopped: the test need not wait for that. */
export async function endLease(schema: string): Promise<void> {
  const { query } = await realPostgres();
  await query(`UPDATE "${schema}".replica SET expires_at = clock_timestamp()`);
}

/** Starts a store, by default over a new schema. A manual clock is the database's time too. */
export async function openStore({ clock = new ManualClock(), ...settings }: StoreSettings = {}) {
  const postgres = await realPostgres();
  const log = new CapturedLog();
  const options = {
    url: postgres.url(),
    schema: newSchema(),
    poolSize: 4,
    ttl: 30 * DAY,
    lease: 5 * MINUTE,
    quotas: { maxSessions: 100_000, maxBytes: 1e9 },
    ...settings,
    clock,
    log: log.logger(clock),
  };
  const newDatabase = (given: DatabaseOptions) =>
    clock instanceof ManualClock ? new ClockedDatabase(given) : new Database(given);
  const store = new PostgresStore(options, newDatabase);
  await store.start();
  const { schema } = options;
  /** Reads or changes the tables beside the store. */
  const query = <R extends object = Record<string, unknown>>(text: string, values?: unknown[]) =>
    postgres.query<R>(text.replaceAll('plugboard.', `"${schema}".`), values);
  const rows = async (table: string) => (await query<{ n: string }>(`SELECT count(*) AS n FROM plugboard.${table}`))[0]?.n ?? '0';
  return {
    store,
    clock,
    schema,
    logs: log.lines,
    query,
    rows: async (table: string) => Number(await rows(table)),
    close: () => store.stop(),
  };
}
