/** What the attacks are made of. */

export const MIB = 1024 * 1024;
/** Milliseconds that a request may take. */
export const TIMEOUT = 12_000;
export const [ATTACKER, INNOCENT] = ['token-of-the-attacker', 'token-of-the-neighbour'];

export const list = (length, make) => Array.from({ length }, (_, at) => make(at));
export const user = (content) => [{ role: 'user', content }];
/** An event of a streamed answer of a model server. */
export const chunk = (delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
export const never = new Promise(() => {});
