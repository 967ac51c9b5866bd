import { setTimeout as wait } from 'node:timers/promises';
import { INNOCENT, TIMEOUT, user } from './values.mjs';

/** Milliseconds between two requests. */
const PAUSE = 20;

/** A caller of another project. It sends one small request after the other during the attack. */
export class Neighbour {
  served = 0;
  refused = 0;
  /** Milliseconds. */
  slowest = 0;

  constructor(subject) {
    this.ended = this.#run(subject);
  }

  async #run(subject) {
    while (!subject.isOver && subject.isAlive) {
      const at = performance.now();
      if (await this.#ask(subject)) this.served++;
      else this.refused++;
      this.slowest = Math.max(this.slowest, performance.now() - at);
      await wait(PAUSE);
    }
  }

  /** @returns whether it is served. */
  async #ask({ url }) {
    const headers = { authorization: `Bearer ${INNOCENT}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'other', messages: user('Hello') });
    try {
      const signal = AbortSignal.timeout(TIMEOUT);
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body, signal });
      await response.text();
      return response.ok;
    } catch {
      return false;
    }
  }
}
