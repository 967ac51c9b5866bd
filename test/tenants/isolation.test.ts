import { contentText } from '@plugboard/testing';
import fc from 'fast-check';
import t from 'tap';
import { rounds } from '../support/rounds.js';
import { TestServer, TRANSPORTS } from '../support/test-server.js';
import { ACTIONS, type Step, Tenant } from './tenant.js';

const RUNS = rounds({ short: 5, long: 40, soak: 200 });
/** Steps of each tenant in a run. */
const STEPS = 40;

t.setTimeout(RUNS * 40_000); // a limit for what hangs, also on a busy machine

const server = await TestServer.start(
  t,
  `${TRANSPORTS}  conversations: {}
sessions: { use: sqlite, path: ./sessions.db }
auth:
  bearer:
    tokens:
      - { name: one, project: one, token: token-of-one-0123456789 }
      - { name: two, project: two, token: token-of-two-0123456789 }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast, system: prompt-of-default }
  bot-of-one: { model: fast, project: one, system: prompt-of-one }
  bot-of-two: { model: fast, project: two, system: prompt-of-two }
projects:
  one: {}
  two: {}
defaultAgent: assistant
`,
);
// It says all that it was told: whatever reached it by mistake comes to light.
server.models.respond(({ body }) => ({ text: body.messages.map(({ content }) => contentText(content)).join(' | ') }));

const step: fc.Arbitrary<Step> = fc.record({
  action: fc.constantFrom(...ACTIONS),
  target: fc.nat(20),
  key: fc.nat(20),
  stream: fc.boolean(),
  idempotency: fc.nat(2),
});
const steps = fc.array(step, { minLength: STEPS, maxLength: STEPS });

t.test('S-01 S-03 S-04 two tenants with random requests see nothing of each other', async (t) => {
  let runs = 0;
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(steps, steps, async (ones, twos) => {
      const run = runs++;
      const [one, two] = [new Tenant('one', run, server), new Tenant('two', run, server)];
      one.meet(two);
      two.meet(one);
      await Promise.all([one.play(ones), two.play(twos)]);
      for (const tenant of [one, two]) {
        taken += tenant.steps;
        const listed = new Set(await tenant.listed());
        for (const id of tenant.own) if (!listed.has(id)) tenant.faults.push(`${tenant.name} has lost ${id}`);
      }
      if (one.faults.length + two.faults.length > 0) throw new Error([...one.faults, ...two.faults].join('\n'));
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
  for (const { body } of server.models.requests) {
    const sent = JSON.stringify(body);
    if (sent.includes('of-one') && sent.includes('of-two')) t.fail(`one model request contains both: ${sent}`);
  }
  t.comment(`${taken} steps of two tenants in ${runs} runs`);
  t.equal(taken, 2 * RUNS * STEPS);
});
