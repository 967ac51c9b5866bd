import type { Playground } from './playground.js';

/** Events of responses on the live connection, which reach the page when the test lets them. */
export class HeldEvents {
  readonly #waiting: (() => void)[] = [];
  #passing: number;

  private constructor(passing: number) {
    this.#passing = passing;
  }

  /**
   * Holds the events of connections that the page opens from now on.
   * @param passing so many are not held.
   */
  static async of({ page }: Playground, passing: number): Promise<HeldEvents> {
    const events = new HeldEvents(passing);
    await page.routeWebSocket(/\/v1\/live/, (socket) => {
      socket.connectToServer().onMessage((message) => {
        if (JSON.parse(String(message)).sequence_number === undefined) return socket.send(message);
        events.#waiting.push(() => socket.send(message));
        events.pass(0);
      });
    });
    return events;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Lets so many more events pass, now or when they come. */
  pass(count: number): void {
    this.#passing += count;
    while (this.#passing > 0 && this.#waiting.length > 0) {
      this.#passing--;
      this.#waiting.shift()?.();
    }
  }
}
