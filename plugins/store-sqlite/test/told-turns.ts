import type { Message } from '@plugboard/kernel';

/**
 * The numbers of the turns that a conversation is made of, in its order, where each message says `turn 3 message 1 of 2`.
 * @throws where a turn is not whole.
 */
export function turnsIn(messages: readonly Message[]): readonly number[] {
  const turns: number[] = [];
  for (let i = 0; i < messages.length; ) {
    const [, n, , count] = told(messages[i]);
    for (let part = 1; part <= count; part++, i++) {
      const found = told(messages[i]);
      if (found[1] !== n || found[2] !== part || found[3] !== count)
        throw new Error(`message ${i} should be number ${part} of ${count} of turn ${n}, and is ${found[0] || 'missing'}`);
    }
    turns.push(n);
  }
  return turns;
}

/** @throws where it says nothing of the kind. */
function told(message: Message | undefined): readonly [text: string, turn: number, part: number, count: number] {
  const [text = '', turn, part, count] = /^turn (\d+) message (\d+) of (\d+)/.exec(String(message?.content)) ?? [];
  if (!Number(count)) throw new Error(`a message that tells of no turn: ${String(message?.content).slice(0, 40)}`);
  return [text, Number(turn), Number(part), Number(count)];
}
