import type { Message } from '@plugboard/kernel';

/**
 * Returns the numbers of the turns of a conversation whose messages say `turn 3 message 1 of 2`.
 * @throws if a turn is incomplete.
 */
export function turnNumbers(messages: readonly Message[]): readonly number[] {
  const turns: number[] = [];
  for (let i = 0; i < messages.length; ) {
    const [, n, , count] = parse(messages[i]);
    for (let part = 1; part <= count; part++, i++) {
      const found = parse(messages[i]);
      if (found[1] !== n || found[2] !== part || found[3] !== count)
        throw new Error(`message ${i} should be number ${part} of ${count} of turn ${n}, and is ${found[0] || 'missing'}`);
    }
    turns.push(n);
  }
  return turns;
}

function parse(message: Message | undefined): readonly [text: string, turn: number, part: number, count: number] {
  const [text = '', turn, part, count] = /^turn (\d+) message (\d+) of (\d+)/.exec(String(message?.content)) ?? [];
  if (!Number(count)) throw new Error(`a message without a turn number: ${String(message?.content).slice(0, 40)}`);
  return [text, Number(turn), Number(part), Number(count)];
}
