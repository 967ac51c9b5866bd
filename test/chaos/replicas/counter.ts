import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Test } from 'tap';

/**
 * A service outside of the servers that a tool writes to: it counts how often it was asked to act
 * for a turn.
 */
export interface Counter {
  readonly url: string;
  /** How often the tool acted, by what the turn's user said. */
  readonly counts: ReadonlyMap<string, number>;
}

export async function startCounter(t: Test): Promise<Counter> {
  const counts = new Map<string, number>();
  const server = createServer((request, response) => {
    json(request).then(
      (body) => {
        const { text } = body as { readonly text: string };
        counts.set(text, (counts.get(text) ?? 0) + 1);
        response.end('counted');
      },
      () => response.destroy(), // the caller was killed
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts };
}

/** A plugin with the tool `count`, which acts on the counter. */
export const COUNT_TOOL = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';

  const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
  async function run({ text }, { signal }) {
    const answer = await fetch(process.env.COUNTER_URL, { method: 'POST', body: JSON.stringify({ text }), signal });
    return answer.text();
  }
  const tool = { name: 'count', description: 'Counts.', effect: 'write', inputSchema, run };
  export default definePlugin({
    name: 'count', apiVersion: 1, summary: 'Counts', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: () => [tool] }),
  });
`;
