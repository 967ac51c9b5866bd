import assert from 'node:assert/strict';
import { Account, type AgentRuntime, Budget, OPEN, type TurnRequest } from '@plugboard/kernel/contracts';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { waitFor } from '../contract/wait.js';
import { assertGrammar, readAll } from './event-grammar.js';

/** The options of `agentRuntimeContract`. @experimental */
export interface AgentRuntimeContractOptions {
  /** Returns a runtime that is ready for use. Called once per case; the caller closes it. */
  readonly open: () => Promise<AgentRuntime> | AgentRuntime;
  /** The name of an agent that every caller of an open server may use, and whose model answers. */
  readonly agent: string;
  /** Milliseconds that one turn may take. By default 10,000. */
  readonly timeLimit?: number;
}

/** Declares the tests of an agent runtime (`AgentRuntime`). @experimental */
export function agentRuntimeContract(test: DeclareTest, { open, agent, timeLimit }: AgentRuntimeContractOptions): void {
  const contract = new Contract('An agent runtime', test);
  const budget = new Budget({ name: 'memory of callers', unit: 'bytes', limit: 100_000_000, setting: 'limits.memory' });
  const account = new Account(budget, OPEN);
  account.hold();
  let keys = 0;
  const key = () => ({ project: OPEN.project, route: '/contract', key: `contract-${process.pid}-${++keys}` });
  const request = (runtime: AgentRuntime, overrides: Partial<TurnRequest> = {}): TurnRequest => {
    const resolved = runtime.resolve(agent, OPEN);
    assert.ok(resolved.kind === 'target', `resolve("${agent}") returns "${resolved.kind}"`);
    return {
      target: resolved.target,
      principal: OPEN,
      messages: [{ role: 'user', content: 'Hello there' }],
      clientTools: [],
      params: {},
      incremental: true,
      requestId: 'req_1',
      metadata: {},
      signal: new AbortController().signal,
      ...overrides,
    } as TurnRequest;
  };
  const run = (runtime: AgentRuntime, overrides: Partial<TurnRequest> = {}) =>
    waitFor('the end of the turn', readAll(runtime.run(request(runtime, overrides))), timeLimit);

  contract.add('resolves the name of an agent', 'AgentRuntime 1', async () => {
    request(await open());
  });
  contract.add('lists the agent', 'AgentRuntime.list', async () => {
    const names = (await open()).list(OPEN).map(({ name }) => name);
    assert.ok(names.includes(agent), `it lists ${names.join(', ') || 'nothing'}`);
  });
  contract.add('resolves every name that it lists', 'AgentRuntime.list', async () => {
    const runtime = await open();
    for (const { name } of runtime.list(OPEN)) {
      const { kind } = runtime.resolve(name, OPEN);
      assert.equal(kind, 'target', `it lists "${name}", and resolve returns "${kind}"`);
    }
  });
  contract.add('runs a turn whose events have the grammar of `AgentEvent`', 'AgentRuntime.run', async () => {
    const end = assertGrammar(await run(await open()));
    assert.equal(end.type, 'finished', `the turn failed: ${JSON.stringify(end)}`);
  });
  contract.add('reports a turn that its caller left as `failed`, without throwing', 'AgentRuntime.run', async () => {
    const events = await run(await open(), { signal: AbortSignal.abort(new Error('the caller disconnected')) });
    assert.equal(assertGrammar(events).type, 'failed', 'the turn ends with `finished` although its signal was aborted');
  });
  contract.add('ends a turn when its reader leaves', 'AgentRuntime 3', async () => {
    const runtime = await open();
    const iterator = runtime.run(request(runtime))[Symbol.asyncIterator]();
    await waitFor('the first batch', iterator.next(), timeLimit);
    await waitFor('the end after the reader left', Promise.resolve(iterator.return?.()), timeLimit);
    assert.equal(assertGrammar(await run(runtime)).type, 'finished', 'the next turn fails');
  });
  contract.add('runs turns at the same time', 'AgentRuntime 2', async () => {
    const runtime = await open();
    for (const events of await Promise.all([run(runtime), run(runtime)])) {
      assert.equal(assertGrammar(events).type, 'finished', 'one of two concurrent turns failed');
    }
  });
  contract.add('gives a free idempotency key to one claim only', 'AgentRuntime.claim', async () => {
    const runtime = await open();
    const shared = key();
    const first = await runtime.claim(shared, 'a', account);
    assert.equal(first.kind, 'new', `the first claim returns "${first.kind}"`);
    const second = await runtime.claim(shared, 'a', account);
    assert.equal(second.kind, 'running', `a second claim returns "${second.kind}" while the turn has not run`);
    if (first.kind !== 'new') return;
    const recorder = { add: () => undefined, text: () => 'recorded' };
    await run(runtime, { idempotency: { claim: first.claim, recorder } });
    const replay = await runtime.claim(shared, 'a', account);
    assert.equal(replay.kind, 'replay', `a claim after the turn returns "${replay.kind}"`);
    const other = await runtime.claim(shared, 'b', account);
    assert.equal(other.kind, 'mismatch', `a claim for another request returns "${other.kind}"`);
  });
  contract.add('frees the key of a claim that is released', 'IdempotencyClaim.release', async () => {
    const runtime = await open();
    const shared = key();
    const first = await runtime.claim(shared, 'a', account);
    if (first.kind === 'new') first.claim.release();
    const second = await runtime.claim(shared, 'b', account);
    assert.equal(second.kind, 'new', `a claim after the release returns "${second.kind}"`);
  });
  contract.add('refuses a caller without the scope `chat`', 'AgentRuntime.run', async () => {
    const end = assertGrammar(await run(await open(), { principal: { ...OPEN, scopes: [] } }));
    assert.equal(end.type, 'failed', 'the turn of a caller without scopes ends with `finished`');
  });
  contract.add('refuses a session key that is not valid', 'SessionRequest.key', async () => {
    for (const invalid of ['', 'x'.repeat(600), 'a\u0000b', 'a\ud800']) {
      const end = assertGrammar(await run(await open(), { session: { key: invalid } }));
      assert.equal(end.type, 'failed', `a turn of the session ${JSON.stringify(invalid)} ends with \`finished\``);
    }
  });
  contract.add('cancels a turn for its caller', 'TurnEvents.cancel', async () => {
    const runtime = await open();
    const events = runtime.run(request(runtime));
    const reading = readAll(events);
    await waitFor('the end of the cancelled turn', events.cancel(), timeLimit);
    assertGrammar(await waitFor('the last event', reading, timeLimit));
  });
  contract.add('ends the events of a turn that nobody reads', 'TurnEvents.setRead', async () => {
    const runtime = await open();
    const events = runtime.run(request(runtime));
    const reading = readAll(events);
    events.setRead(false);
    assertGrammar(await waitFor('the last event', reading, timeLimit));
  });
  contract.add('says whether turns can run', 'AgentRuntime.ready', async () => {
    assert.equal(await (await open()).ready(), true, '`ready()` does not return true although the agent answers');
  });
}
