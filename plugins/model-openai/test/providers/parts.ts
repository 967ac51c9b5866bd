import { streamedAnswer, wholeAnswer } from './protocol.js';
import type { Provider, Sent } from './provider-server.js';

/** The form of the protocol's errors, with a wait that the tests can afford. */
const busy = { status: 429, body: { error: { message: 'Slow down.' } }, headers: { 'retry-after-ms': '1' } };

export const PLAIN: Pick<Provider, 'stream' | 'whole' | 'passing' | 'lasting' | 'usage'> = {
  stream: streamedAnswer,
  whole: wholeAnswer,
  passing: busy,
  lasting: { script: { status: 400, body: { error: { message: 'Bad image.' } } }, message: /answered 400: Bad image\./ },
  usage: [20, 5, 0, 0],
};

/** The keywords of JSON Schema that strict servers accept. */
export const STRICT_KEYWORDS = [
  ...['type', 'title', 'description', 'enum', 'const', 'items', 'properties', 'required', 'anyOf', 'additionalProperties'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'minItems', 'maxItems', 'minLength'],
];

/**
 * Both forms of an answer that differ from the protocol in the same things.
 *
 * @param usageIn `last`: the usage is in the last choice only.
 */
export function forms(form: Parameters<typeof streamedAnswer>[2], usageIn?: 'last'): Pick<Provider, 'stream' | 'whole'> {
  return {
    stream: (answer, request) => {
      const chunks = streamedAnswer(answer, request, form);
      return usageIn === 'last' ? chunks.slice(0, -1) : chunks;
    },
    whole: (answer, request) => {
      const body = wholeAnswer(answer, request, form);
      return usageIn === 'last' ? { ...body, usage: undefined } : body;
    },
  };
}

/** Roles that do not alternate. */
export function orderFault(messages: readonly Sent[]): string | undefined {
  for (const [i, { role }] of messages.entries()) {
    const before = messages[i - 1]?.role;
    if (role === before && role !== 'tool') return `Conversation roles must alternate: ${role} after ${role}`;
    if (role === 'user' && before === 'tool') return "Unexpected role 'user' after role 'tool'";
    if (role === 'system' && i > 0) return 'system must be the first message';
  }
  return undefined;
}
