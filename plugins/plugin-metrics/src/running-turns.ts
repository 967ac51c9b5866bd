/** What a turn did so far. */
export interface TurnCounts {
  inferences: number;
  tools: number;
}

/** Counts what the turns that run do, by their ids. */
export class RunningTurns {
  readonly #turns = new Map<string, TurnCounts>();

  begin(turnId: string): void {
    this.#turns.set(turnId, { inferences: 0, tools: 0 });
  }

  /** Undefined for a turn that has ended, or began before anything was counted. */
  get(turnId: string): TurnCounts | undefined {
    return this.#turns.get(turnId);
  }

  /** Returns what the turn did, and forgets it. */
  end(turnId: string): TurnCounts | undefined {
    const counts = this.#turns.get(turnId);
    this.#turns.delete(turnId);
    return counts;
  }
}
