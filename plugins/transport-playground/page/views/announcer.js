/** Least time between two texts for screen readers, in milliseconds. */
const ANNOUNCE_INTERVAL = 1500;

/** Passes the newest announcement to screen readers, but not each one of a quick series. */
export class Announcer {
  /** What they read. */
  text = '';
  #at = 0;

  /** @param {string} newest @param {() => void} onChange renders again */
  announce(newest, onChange) {
    if (newest === this.text) return;
    const wait = this.#at + ANNOUNCE_INTERVAL - performance.now();
    setTimeout(onChange, Math.max(0, wait));
    if (wait > 0) return;
    this.#at = performance.now();
    this.text = newest;
  }
}
