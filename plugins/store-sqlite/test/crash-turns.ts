import type { Message } from '@plugboard/kernel';

/** The sessions of the crash test. */
export const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];

/** Numbers from 0 up to, not including, 1: the same ones for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A turn of 2 to 6 messages, most of them short, each of which says which one it is. */
export function crashTurn(n: number, random: () => number): readonly Message[] {
  const count = 2 + Math.floor(random() * 5);
  return Array.from({ length: count }, (_, i) => ({
    role: i === 0 ? 'user' : 'assistant',
    content: `turn ${n} message ${i + 1} of ${count} ${'x'.repeat(random() < 0.1 ? 100_000 : 200)}`,
  }));
}

/**
 * The numbers of the turns that a conversation is made of, in its order.
 * @throws where a turn is not whole.
 */
export function turnsIn(messages: readonly Message[]): readonly number[] {
  const turns: number[] = [];
  for (let i = 0; i < messages.length; ) {
    const [, n, , count] = named(messages[i]);
    for (let part = 1; part <= count; part++, i++) {
      const found = named(messages[i]);
      if (found[1] !== n || found[2] !== part || found[3] !== count)
        throw new Error(`message ${i} should be number ${part} of ${count} of turn ${n}, and is ${found[0] || 'missing'}`);
    }
    turns.push(n);
  }
  return turns;
}

function named(message: Message | undefined): readonly [text: string, turn: number, part: number, count: number] {
  const [text = '', ...numbers] = /^turn (\d+) message (\d+) of (\d+)/.exec(String(message?.content)) ?? [];
  const [turn = 0, part = 0, count = 0] = numbers.map(Number);
  return [text, turn, part, count];
}
