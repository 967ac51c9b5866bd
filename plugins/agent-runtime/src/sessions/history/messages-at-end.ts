import type { Message } from '@plugboard/kernel';
import type { StoredTurn, TurnPage } from '@plugboard/kernel/contracts';

/**
 * Reads the last turns of a session that is not loaded, down to one that has more than results:
 * enough to know which calls are open (S-76).
 */
export async function messagesAtEnd(read: (page: TurnPage) => Promise<readonly StoredTurn[]>): Promise<readonly Message[]> {
  const messages: Message[] = [];
  for (let after: number | undefined; messages.every(({ role }) => role === 'tool'); ) {
    const [last] = await read({ order: 'desc', limit: 1, after });
    if (!last) break;
    messages.unshift(...last.messages);
    after = last.turn;
  }
  return messages;
}
