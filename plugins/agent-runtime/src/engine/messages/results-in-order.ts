import type { Message } from '@plugboard/kernel';

/**
 * Puts the results of each step in the order of its calls: they arrive in the order in which the
 * calls ended or were decided. Returns the same array if nothing moves.
 */
export function resultsInOrder(messages: readonly Message[]): readonly Message[] {
  let ordered: Message[] | undefined;
  for (let index = 0; index < messages.length; index++) {
    const asking = messages[index];
    const calls = asking?.role === 'assistant' ? asking.tool_calls : undefined;
    if (!calls || calls.length < 2) continue;
    let end = index + 1;
    while (messages[end]?.role === 'tool') end++;
    const places = new Map(calls.map(({ id }, place) => [id, place]));
    const placeOf = (message: Message) => (message.role === 'tool' ? (places.get(message.tool_call_id) ?? 0) : 0);
    const results = messages.slice(index + 1, end);
    if (results.every((result, at) => at === 0 || placeOf(results[at - 1] as Message) <= placeOf(result))) continue;
    ordered ??= [...messages];
    ordered.splice(index + 1, results.length, ...results.sort((a, b) => placeOf(a) - placeOf(b)));
  }
  return ordered ?? messages;
}
