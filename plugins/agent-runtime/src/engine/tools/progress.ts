import type { AgentEvent, Clock } from '@plugboard/kernel';

/** Characters of one report (S-75). */
const MAX_MESSAGE = 1024;
/** Reports of one call in a second. Further ones are dropped: the next second has newer ones. */
const MAX_RATE = 100;
const SECOND = 1000;
/** Reports of one call that wait for a slow reader. */
const MAX_WAITING = 16;

/** The reports of a running tool call as events: short ones, and not too many. */
export class ProgressReports {
  readonly #id: string;
  readonly #clock: Clock;
  readonly #emit: (event: AgentEvent) => void;
  #since = Number.NEGATIVE_INFINITY;
  #count = 0;

  /** @param id of the call. */
  constructor(id: string, clock: Clock, emit: (event: AgentEvent) => void) {
    this.#id = id;
    this.#clock = clock;
    this.#emit = emit;
  }

  /** @param fraction from 0 to 1. */
  readonly report = (message: string, fraction?: number): void => {
    const now = this.#clock.monotonic();
    if (now - this.#since >= SECOND) [this.#since, this.#count] = [now, 0];
    if (this.#count++ >= MAX_RATE) return;
    this.#emit({ type: 'tool-progress', id: this.#id, message: shortened(message), fraction });
  };
}

/** Events that wait for their reader, with room for another report of a call: old ones go. */
export function withoutOldReport(events: AgentEvent[], id: string): AgentEvent[] {
  const waiting = events.filter((event) => event.type === 'tool-progress' && event.id === id);
  return waiting.length < MAX_WAITING ? events : events.filter((event) => event !== waiting[0]);
}

/** A copy: a slice would keep the whole text in memory. */
function shortened(message: string): string {
  if (message.length <= MAX_MESSAGE) return message;
  return `${Buffer.from(message.slice(0, MAX_MESSAGE - 1).toWellFormed()).toString()}…`;
}
