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

type Config = string | { readonly text: string; readonly name?: string };

/** Records every statement that the stores of this process send, until the test is over. */
export function sentStatements(t: Test): readonly Sent[] {
  const sent: Sent[] = [];
  let ticks = 0;
  let timer = setImmediate(function tick() {
    ticks++;
    timer = setImmediate(tick);
  });
  const original = pg.Client.prototype.query as (this: pg.Client, config: Config, ...more: unknown[]) => Promise<unknown>;
  const recorded = async function (this: pg.Client, config: Config, ...more: unknown[]) {
    if (typeof config === 'string' || more.length > 0) return original.call(this, config, ...more); // of the test
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
