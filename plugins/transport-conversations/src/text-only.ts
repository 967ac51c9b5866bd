import type { Target } from '@plugboard/kernel';

/** The name of the model connection, where it takes nothing but text. */
export function connectionForTextOnly({ input, connection }: Target): string | undefined {
  return input.includes('image') ? undefined : connection;
}
