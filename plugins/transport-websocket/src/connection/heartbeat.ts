import { CLOSE, type CloseReason } from './close-codes.js';
import type { ConnectionLimits } from './connection-limits.js';

/** Milliseconds that a connection may be open without a response. */
const MAX_IDLE = 30 * 60_000;
/** Milliseconds that a pong may take beyond the second ping. */
const PONG_GRACE = 5_000;

/** What to do with a connection now. */
type Pulse = 'ping' | 'terminate' | CloseReason | undefined;

/**
 * Decides when a connection is pinged, and when it ends: its client stopped reading, went silent or
 * does nothing, or it is too old. Times are monotonic, in milliseconds.
 */
export class Heartbeat {
  readonly #limits: ConnectionLimits;
  readonly #openedAt: number;
  #lastTick: number;
  #lastHeard: number;
  #lastPing: number;
  #lastUse: number;
  #stalledFor = 0;

  constructor(limits: ConnectionLimits, now: number) {
    this.#limits = limits;
    this.#openedAt = now;
    this.#lastTick = now;
    this.#lastHeard = now;
    this.#lastPing = now;
    this.#lastUse = now;
  }

  /** The client sent something. */
  heard(now: number): void {
    this.#lastHeard = now;
  }

  /** A response was created, or ended. */
  used(now: number): void {
    this.#lastUse = now;
  }

  /** Whether the connection takes no new responses. */
  isTooOld(now: number): boolean {
    return now - this.#openedAt >= this.#limits.maxAge;
  }

  /**
   * Called about once a second.
   *
   * @param progress of the client's reading since the last call.
   * @param busy whether responses are in flight.
   */
  tick(now: number, progress: 'idle' | 'reading' | 'stalled', busy: boolean): Pulse {
    const { pingInterval, stallTimeout } = this.#limits;
    this.#stalledFor = progress === 'stalled' ? this.#stalledFor + now - this.#lastTick : 0;
    this.#lastTick = now;
    // Pings wait behind what a slow client still has to read, so its reading counts as a sign of
    // life.
    if (progress === 'reading') this.#lastHeard = now;
    if (this.#stalledFor >= stallTimeout) return CLOSE.slowConsumer;
    // While data waits, pongs cannot come: the stall timeout decides.
    if (progress !== 'stalled' && now - this.#lastHeard >= 2 * pingInterval + PONG_GRACE) return 'terminate';
    if (!busy && this.isTooOld(now)) return CLOSE.maxAge;
    if (!busy && now - this.#lastUse >= MAX_IDLE) return CLOSE.idle;
    if (now - this.#lastPing < pingInterval) return undefined;
    this.#lastPing = now;
    return 'ping';
  }
}
