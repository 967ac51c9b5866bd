import type { Call } from '../../attacks/support/every-route.js';
import { mutate } from './mutate.js';
import { Random } from './random.js';
import { bodiesOf, type Known, messagesOf } from './samples.js';

/** One thing that the attacker sends. */
export interface Case {
  readonly index: number;
  /** `socket`: a message on a WebSocket. */
  readonly kind: 'request' | 'socket';
  readonly method: string;
  readonly path: string;
  /** Undefined for a request without one. */
  readonly body: Buffer | undefined;
  /** What it is, for a report. */
  readonly title: string;
}

/** The case with a number: the same one for the same seed, but for the ids that the server gave. */
export function caseOf(seed: number, index: number, routes: readonly Call[], known: Known): Case {
  const random = new Random(seed, index);
  if (random.chance(0.2)) {
    const { bytes, mutations } = mutate(random.pick(messagesOf(known)), random);
    return {
      index,
      kind: 'socket',
      method: '',
      path: '/v1/live',
      body: bytes,
      title: `${index}: message, ${mutations.join(', ')}`,
    };
  }
  // Most routes have no body, and most cases are about bodies.
  const wantsBody = random.chance(0.9);
  const call = random.pick(routes.filter(({ takesJson }) => takesJson === wantsBody));
  const path = pathOf(call, random, known);
  const { method, route } = call;
  if (!wantsBody)
    return { index, kind: 'request', method, path, body: undefined, title: `${index}: ${method} ${path.slice(0, 100)}` };
  const { bytes, mutations } = mutate(random.pick(bodiesOf(route, known)), random);
  return { index, kind: 'request', method, path, body: bytes, title: `${index}: ${route}, ${mutations.join(', ')}` };
}

/** Odd ids, and queries that some list may understand. */
function pathOf({ path, route }: Call, random: Random, { responses, conversations }: Known): string {
  const ids = random.chance(0.7)
    ? [...responses, ...conversations]
    : ['%00', '..%2f..', 'é'.repeat(random.count(2_000)), '%F0%9F', '__proto__'];
  const filled =
    route.includes(':') || route.includes('*') ? path.replaceAll(/conv_0{40}/g, () => encodeURI(random.pick(ids) ?? 'x')) : path;
  if (random.chance(0.6)) return filled;
  const [name, value] = [
    random.pick(['limit', 'after', 'order', 'include', 'stream', 'x']),
    random.pick(['1', '-1', '1e9', 'asc', 'true', '[]']),
  ];
  return `${filled}?${Array(random.count(1_000)).fill(`${name}=${value}`).join('&').slice(0, 10_000)}`;
}
