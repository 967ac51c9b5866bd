import { createHash } from 'node:crypto';
import type { SharedSums } from './shared-sums.js';
import type { Sums } from './sums.js';

/** What calls are added up by. */
export interface RowLabels {
  /** In UTC. */
  readonly day: string;
  readonly project: string;
  /** Null on an open server. */
  readonly token: { readonly id: string; readonly name: string | null } | null;
  readonly agent: string;
  /** The connection. */
  readonly model: string;
  readonly currency: string;
}

const PREFIX = 'row/';
/** Comes after every key of a day. */
const LAST = '~';

/** One row of sums for each day, project, token, agent and connection. */
export class UsageRows {
  readonly #sums: SharedSums;

  constructor(sums: SharedSums) {
    this.#sums = sums;
  }

  /** @param keep milliseconds. */
  add(labels: RowLabels, sums: Sums, keep: number): void {
    const { day, project, token, agent, model, currency } = labels;
    const key = `${PREFIX}${day}/${digestOf([project, token?.id, agent, model, currency])}`;
    this.#sums.add(key, sums, { labels: { ...labels }, expiresIn: keep });
  }

  /** Yields the rows of days, from one to another (both included). */
  async *between(from: string, to: string): AsyncGenerator<{ readonly labels: RowLabels; readonly sums: Sums }> {
    for await (const { labels, sums } of this.#sums.between(PREFIX, `${PREFIX}${from}`, `${PREFIX}${to}/${LAST}`)) {
      yield { labels: labels as unknown as RowLabels, sums };
    }
  }
}

/** A short name for values that may be long. */
export function digestOf(values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url').slice(0, 22);
}
