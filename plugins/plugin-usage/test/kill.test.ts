import { setTimeout as wait } from 'node:timers/promises';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { Victim } from '../../../test/chaos/victim.js';
import { rounds } from '../../../test/support/rounds.js';
import { parseMoney, textOf } from '../src/money/money.js';
import type { Report } from './support.js';

const ROUNDS = rounds({ short: 1, long: 20, soak: 100 });
const YAML = `
transports:
  http: { port: 0 }
  chat-completions: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast }
  writer: { model: fast }
plugins:
  usage: { prices: { fast: { input: 0.3, output: 0.7 } } }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;
/** 10 × 0.3 + 3 × 0.7 millionths. */
const CALL = parseMoney('0.0000051');

t.setTimeout(60_000 + ROUNDS * 10_000);

t.test(
  `a server that is killed ${ROUNDS} times while usage is written loses at most a second, and charges nothing twice`,
  async (t) => {
    const folder = t.testdir({ 'plugboard.yaml': YAML });
    const models = await ModelServer.start();
    t.teardown(() => models.close());
    models.respond({ text: 'Good day to you.', usage: { promptTokens: 10, completionTokens: 3 } });
    const victim = new Victim(t, folder, { MODEL_URL: models.url });
    let stored = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const url = await victim.start();
      let answered = 0;
      const turn = async (agent: string) => {
        const body = JSON.stringify({ model: agent, messages: [{ role: 'user', content: 'Hello' }] });
        const headers = { 'content-type': 'application/json' };
        const reply = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body }).catch(() => undefined);
        if (reply?.status === 200) answered++;
        return reply !== undefined;
      };
      const before = models.requests.length;
      await Promise.all(Array.from({ length: 20 }, (_, n) => turn(n % 2 ? 'assistant' : 'writer')));
      const early = answered;
      t.equal(early, 20);
      await wait(1_000); // the second that may be lost
      const players = ['assistant', 'writer', 'assistant', 'writer'].map(async (agent) => {
        while (await turn(agent));
      });
      await wait(300 + 250 * (round % 4)); // before, while and after the first of them are written
      await victim.kill();
      await Promise.all(players);
      const asked = models.requests.length - before;

      const { total, data } = await usageOf(await victim.start());
      await victim.kill();
      const kept = total.calls - stored;
      t.comment(
        `round ${round + 1}: the model was asked ${asked} times, ${answered} answers were sent, ${kept} calls are charged`,
      );
      t.ok(kept >= early && kept <= asked, `${early} ≤ ${kept} ≤ ${asked}`);
      t.equal(total.cost, textOf(BigInt(total.calls) * CALL));
      t.match(total, { input_tokens: total.calls * 10, output_tokens: total.calls * 3, estimated_calls: 0 });
      t.equal(data.length, 2);
      stored = total.calls;
    }

    const url = await victim.start();
    t.equal((await usageOf(url)).total.calls, stored);
    t.equal(await victim.stop(), 0);
  },
);

async function usageOf(url: string): Promise<Report> {
  return (await fetch(`${url}/v1/usage`)).json() as Promise<Report>;
}
