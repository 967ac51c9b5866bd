/**
 * How long a game of chance is played: `short` in `npm test`, `long` in `npm run test:long`, `soak`
 * in `npm run test:soak`. The runner plays a file that calls this in each of the three.
 */
export type Length = 'short' | 'long' | 'soak';

export const LENGTH = (process.env.PLUGBOARD_LENGTH ?? 'short') as Length;

/** Picks the number of rounds for the length of this run. */
export function rounds(numbers: Readonly<Record<Length, number>>): number {
  return numbers[LENGTH];
}
