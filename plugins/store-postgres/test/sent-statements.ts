import pg from 'pg';
import type { Test } from 'tap';

/** A statement that a client sent, and the turn of the event loop in which it did. */
interface Sent {
  readonly text: string;
  readonly named: boolean;
  readonly client: pg.Client;
  readonly sentAt: number;
  answeredAt?: number;
}

/** Records every statement that this process sends, until the test is over. */
export function sentStatements(t: Test): readonly Sent[] {
  const sent: Sent[] = [];
  let ticks = 0;
  let timer = setImmediate(function tick() {
    ticks++;
    timer = setImmediate(tick);
  });
  const original = pg.Client.prototype.query as (this: pg.Client, config: { text: string; name?: string }) => Promise<unknown>;
  const recorded = async function (this: pg.Client, config: { text: string; name?: string }) {
    const one: Sent = { text: config.text, named: config.name !== undefined, client: this, sentAt: ticks };
    sent.push(one);
    try {
      return await original.call(this, config);
    } finally {
      one.answeredAt = ticks;
    }
  };
  Object.assign(pg.Client.prototype, { query: recorded });
  t.teardown(() => {
    clearImmediate(timer);
    Object.assign(pg.Client.prototype, { query: original });
  });
  return sent;
}
