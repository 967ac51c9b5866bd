import { setTimeout as wait } from 'node:timers/promises';
import type { Flood } from './flood.js';
import { FIRST, INNOCENT, SECOND, sentBy, type storeHeavy } from './heavy-requests.js';
import { Neighbour } from './neighbour.js';
import type { ServerProcess } from './server-process.js';

/** Connections of each of the two attackers. */
const CONNECTIONS = 4;
/** Milliseconds of a measurement, and after the attack has begun or ended. */
const [LENGTH, SETTLE] = [400, 200];
/** Of a machine that does something else, one round in so many is quiet. */
const ROUNDS = 6;

/** What an innocent caller got beside an attack, of what it gets alone. */
interface Share {
  readonly share: number;
  readonly alone: number;
  readonly beside: number;
  readonly statuses: Readonly<Record<string, number>>;
}

/** Measures the rate of an innocent caller in turns alone and beside two others. */
export class InnocentRate {
  readonly #server: ServerProcess;
  readonly #stored: Awaited<ReturnType<typeof storeHeavy>>;
  readonly #flood: Flood;

  constructor(server: ServerProcess, stored: Awaited<ReturnType<typeof storeHeavy>>, flood: Flood) {
    this.#server = server;
    this.#stored = stored;
    this.#flood = flood;
  }

  /** @returns the best of a few rounds: it stops with the first that is good enough. */
  async beside(name: string, enough: number): Promise<Share> {
    let best: Share = { share: 0, alone: 0, beside: 0, statuses: {} };
    for (let round = 0; round < ROUNDS && best.share < enough && this.#server.running; round++) {
      const before = await this.#rate();
      this.#flood.start(
        this.#server,
        Array.from({ length: 2 * CONNECTIONS }, (_, at) => sentBy(at % 2 ? FIRST : SECOND, name, this.#stored)),
      );
      await wait(SETTLE);
      const beside = await this.#rate();
      const statuses = await this.#flood.stop();
      await wait(SETTLE);
      const alone = Math.max(before, await this.#rate());
      const share = alone === 0 ? 0 : beside / alone;
      if (share >= best.share) best = { share, alone, beside, statuses };
    }
    return best;
  }

  /** Turns per second of a caller that pauses between them: a busy machine slows it less. */
  async #rate(): Promise<number> {
    const neighbour = new Neighbour(this.#server, { token: INNOCENT, model: 'innocents', pause: 10 });
    await wait(LENGTH);
    return (await neighbour.stop()).rate;
  }
}
