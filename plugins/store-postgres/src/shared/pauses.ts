/** Milliseconds between two looks at what another server may change, at first and at most. */
export const FIRST_PAUSE = 250;
const MAX_PAUSE = 2_000;

/** The pause after one of so many milliseconds. */
export function longer(pause: number): number {
  return Math.min(pause * 2, MAX_PAUSE);
}
