import type { Message } from '@plugboard/kernel';
import type { ToolCallPart } from '@plugboard/kernel/contracts';

const LONG = 'word '.repeat(50_000);
const SEPARATORS = ' \n\t\r,;`.'.repeat(2_000);

export const list = <T>(length: number, make: (at: number) => T): T[] => Array.from({ length }, (_, at) => make(at));

const user = (content: string): Message => ({ role: 'user', content });
const call = (id: string): ToolCallPart => ({ id, type: 'function', function: { name: 'f', arguments: '{"a":1}' } });
const calls = (...ids: readonly string[]): Message => ({ role: 'assistant', content: null, tool_calls: ids.map(call) });
const result = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: 'ok' });

/** The largest shapes of a conversation, by their size. Some of them no transport lets through. */
export const CONVERSATIONS: Readonly<Record<string, (n: number) => Message[]>> = {
  wide: (n) => {
    const ids = list(n, (at) => `call_${at}`);
    return [user('Hi'), calls(...ids), ...ids.map(result), user('Go on')];
  },
  deep: (n) => [user('Hi'), ...list(n, (at) => [calls(`call_${at}`), result(`call_${at}`)]).flat()],
  reversed: (n) => {
    const ids = list(n, (at) => `call_${at}`);
    return [user('Hi'), calls(...ids), ...ids.toReversed().map(result)];
  },
  'equal ids': (n) => [user('Hi'), ...list(n, () => [calls('call_1'), result('call_1')]).flat()],
  'a long text before many steps': (n) => [user(LONG), ...list(n, (at) => [calls(`c${at}`), result(`c${at}`)]).flat()],
  'users alone': (n) => list(n, (at) => user(`Hi ${at}`)),
  'parts of users': (n) => list(n, () => ({ role: 'user', content: [{ type: 'text', text: 'Hi' }] })),
  'a message of many parts': (n) => [{ role: 'user', content: list(n, () => ({ type: 'text', text: 'Hi' })) }],
  'answers alone': (n) => list(n, (at) => ({ role: 'assistant', content: `Hi ${at}` })),
  'prompts alone': (n) => list(n, () => ({ role: 'system', content: 'Be brief' })),
  'results alone': (n) => list(n, (at) => result(`call_${at}`)),
  separators: (n) => [user(SEPARATORS), ...list(n, () => user(' \n'))],
  turns: (n) => list(n, (at) => [user(`Hi ${at}`), { role: 'assistant', content: 'Hello' } as const]).flat(),
};

/** The same as items of the Responses API. */
export function itemsOf(messages: readonly Message[]): object[] {
  return messages.flatMap((message): object[] => {
    if (message.role === 'tool') return [{ type: 'function_call_output', call_id: message.tool_call_id, output: 'ok' }];
    if (message.role !== 'assistant' || !message.tool_calls) {
      const content = typeof message.content === 'string' ? message.content : list(1, () => ({ type: 'input_text', text: 'Hi' }));
      return [{ type: 'message', role: message.role, content }];
    }
    return message.tool_calls.map(({ id }) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' }));
  });
}

/** The same as messages of the Messages API. */
export function blocksOf(messages: readonly Message[]): object[] {
  return messages.map((message) => {
    if (message.role === 'tool')
      return { role: 'user', content: [{ type: 'tool_result', tool_use_id: message.tool_call_id, content: 'ok' }] };
    if (message.role !== 'assistant' || !message.tool_calls) return { role: message.role, content: message.content };
    return { role: 'assistant', content: message.tool_calls.map(({ id }) => ({ type: 'tool_use', id, name: 'f', input: {} })) };
  });
}

/** The largest shapes of a text. */
export const TEXTS: Readonly<Record<string, (n: number) => string>> = {
  words: (n) => 'word '.repeat(n),
  blanks: (n) => `deny ABCDEF because${' '.repeat(n)}x\u2028y`,
  'short lines': (n) => 'approve ABCDEF\n'.repeat(n),
  'empty lines': (n) => '\n'.repeat(n),
  marks: (n) => '`.!'.repeat(n),
  'one word': (n) => 'a'.repeat(n),
};
