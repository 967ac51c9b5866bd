import type { AgentEvent, ToolSource } from '@plugboard/kernel';
import { type AgentRuntime, OPEN, type SessionId, type TurnRequest } from '@plugboard/kernel/contracts';
import t from 'tap';
import {
  accountOf,
  answerWith,
  callTools,
  collect,
  endOf,
  gatedModel,
  memoryStore,
  request,
  ScriptedModel,
  startRuntime,
  textOfEvents,
  tool,
  user,
} from '../harness.js';

/** A source whose tool asks an agent. @param run what the tool does with the function that asks. */
function askingTool(
  agent: string,
  runtime: () => AgentRuntime,
  run: (ask: (session?: string) => Promise<readonly AgentEvent[]>) => Promise<string>,
): ToolSource {
  const only = tool('ask', (_, call) => {
    const { principal } = call;
    const resolution = runtime().resolve(agent, principal);
    if (resolution.kind !== 'target') return 'unknown';
    const asked = request(resolution.target, { parent: call, principal, messages: [user('Go on')] });
    return run((key) => collect(runtime().run({ ...asked, ...(key !== undefined && { session: { key } }) } as TurnRequest)));
  });
  const asks = { agent, depth: 3, setsDepth: false, maxChildren: 8 };
  return { single: true, timeout: '1h', asks, tools: () => [only] };
}

const AGENTS = { assistant: { model: 'root', tools: ['helper'] }, child: { model: 'fast' } };

t.test('AG-7 a session is deleted when what its children answered was stored', async (t) => {
  const storing = Promise.withResolvers<SessionId>();
  const gate = Promise.withResolvers<void>();
  const store = memoryStore();
  const commit = store.commit.bind(store);
  store.commit = async (id, turn) => {
    if (id.agent === 'child') {
      storing.resolve(id);
      await gate.promise;
    }
    await commit(id, turn);
  };
  const { runtime, target } = await startRuntime({
    agents: AGENTS,
    models: { root: new ScriptedModel([callTools(['helper', {}])]), fast: new ScriptedModel([answerWith('secret')]) },
    tools: {
      helper: askingTool(
        'child',
        () => runtime,
        async (ask) => textOfEvents(await ask('helper')),
      ),
    },
    store,
  });
  const turn = collect(runtime.run(request(target(), { session: { key: 's' } })));
  const child = await storing.promise;
  const [begun] = await runtime.conversations.list({ limit: 9, order: 'asc' }, OPEN, accountOf());
  const deleting = runtime.conversations.delete(begun?.conversation ?? '', OPEN);
  t.match(endOf(await turn), { failure: { code: 'session_deleted' } });
  t.equal(await store.info(child), undefined);
  gate.resolve();
  await deleting;
  t.equal(await store.info(child), undefined, 'it was stored, then deleted');
  t.equal(await store.version(child), 2);
});

t.test('a turn that a tool call started ends with the call', async (t) => {
  const { model, call } = gatedModel();
  let reading: Promise<readonly AgentEvent[]> | undefined;
  const { runtime, target } = await startRuntime({
    agents: AGENTS,
    models: { root: new ScriptedModel([callTools(['helper', {}]), answerWith('Done.')]), fast: model },
    tools: {
      helper: askingTool(
        'child',
        () => runtime,
        async (ask) => {
          reading = ask();
          await call(1);
          return 'early';
        },
      ),
    },
  });
  const events = await collect(runtime.run(request(target())));
  t.match(endOf(events), { reason: 'stop' });
  t.match((await reading)?.at(-1), { failure: { code: 'abandoned', message: 'The tool call that started the turn has ended.' } });
});

t.test('a tool call has one turn at a time, and none after its end', async (t) => {
  let late: (() => Promise<readonly AgentEvent[]>) | undefined;
  const ends: unknown[] = [];
  const { runtime, target } = await startRuntime({
    agents: AGENTS,
    models: { root: new ScriptedModel([callTools(['helper', {}])]), fast: new ScriptedModel(() => answerWith('Yes.')) },
    tools: {
      helper: askingTool(
        'child',
        () => runtime,
        async (ask) => {
          late = ask;
          for (const events of await Promise.all([ask(), ask()])) ends.push(endOf(events));
          ends.push(endOf(await ask()));
          return 'done';
        },
      ),
    },
  });
  await collect(runtime.run(request(target())));
  const refused = { type: 'failed', failure: { code: 'crashed', message: /cannot start a turn/ } };
  t.match(ends, [{ type: 'finished' }, refused, { type: 'finished' }]);
  t.match(await late?.(), [refused]);
});

t.test('a person who runs a tool by hand can ask an agent', async (t) => {
  const { runtime } = await startRuntime({
    agents: { ...AGENTS, assistant: { ...AGENTS.assistant, maxSteps: 1 } },
    models: { root: new ScriptedModel([]), fast: new ScriptedModel(() => answerWith('By hand.')) },
    tools: {
      helper: askingTool(
        'child',
        () => runtime,
        async (ask) => textOfEvents(await ask('helper')),
      ),
    },
  });
  const run = { agent: 'assistant', entry: 'helper', tool: 'ask', arguments: '{}', isApproved: true, requestId: 'req_1' };
  const result = await runtime.cards.runTool({ ...run, signal: new AbortController().signal }, OPEN);
  t.match(result, { content: 'By hand.', isError: false });
});

t.test('AG-4 the summary of a child counts in the usage of the turn', async (t) => {
  let summaries = 0;
  const { runtime, target } = await startRuntime({
    agents: { ...AGENTS, child: { model: 'fast', history: { policy: 'summarize', maxMessages: 4 } } },
    models: {
      root: new ScriptedModel((_, nth) => (nth % 2 === 1 ? callTools(['helper', {}]) : answerWith('Done.'))),
      fast: new ScriptedModel(({ messages }) => {
        if (/^You keep the memory/.test(String(messages[0]?.content))) summaries++;
        return answerWith('short');
      }),
    },
    tools: {
      helper: askingTool(
        'child',
        () => runtime,
        async (ask) => textOfEvents(await ask('helper')),
      ),
    },
  });
  const totals: number[] = [];
  while (summaries === 0 && totals.length < 9) {
    const end = endOf(await collect(runtime.run(request(target(), { session: { key: 's' } }))));
    if (end.type === 'finished') totals.push(end.usage.promptTokens);
  }
  t.equal(totals[0], 30, 'two model calls of the root, one of the child');
  t.equal(totals.at(-1), 40, 'and one for the summary');
});
