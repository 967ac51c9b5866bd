import type { AgentEvent } from '@plugboard/kernel';
import {
  type AgentEvents,
  type AgentRuntime,
  type ClaimResult,
  type IdempotencyKey,
  isBlankKey,
  NO_USAGE,
  OPEN,
  sessionKeyProblem,
  type Target,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import t from 'tap';
import { turnEvents } from '../../src/context/turn-events.js';
import { agentRuntimeContract } from '../../src/suites/agent-runtime.js';
import { casesOf, failing } from '../failing.js';

/** Runs one agent, which always answers "Hello". Keeps no sessions. */
function runtime(change: Partial<AgentRuntime> = {}): AgentRuntime {
  const claims = new Map<string, { fingerprint: string; text?: string }>();
  const idOf = ({ project, route, key }: IdempotencyKey) => JSON.stringify([project, route, key]);
  return {
    resolve: (name) => (name === 'a' ? { kind: 'target', target: { name } as Target } : { kind: 'unknown' }),
    list: () => [{ name: 'a', kind: 'agent', description: undefined }],
    async claim(key, fingerprint): Promise<ClaimResult> {
      const found = claims.get(idOf(key));
      if (found === undefined) {
        claims.set(idOf(key), { fingerprint });
        return { kind: 'new', claim: { key, fingerprint, release: () => void claims.delete(idOf(key)) } };
      }
      if (found.fingerprint !== fingerprint) return { kind: 'mismatch' };
      return found.text === undefined ? { kind: 'running' } : { kind: 'replay', text: found.text };
    },
    run: turns(async function* ({ signal, idempotency, principal, session }) {
      const isInvalid = session && (isBlankKey(session.key) || sessionKeyProblem(session.key) !== undefined);
      if (signal.aborted || isInvalid || !principal.scopes.includes('chat')) {
        const failed: AgentEvent = { type: 'failed', failure: { code: 'abandoned', message: 'gone', toolsRan: false } };
        yield [failed];
        return;
      }
      yield [{ type: 'started', turnId: 'turn_1', agent: 'a' }];
      const found = idempotency && claims.get(idOf(idempotency.claim.key));
      if (found) found.text = idempotency.recorder.text();
      yield [
        { type: 'text', text: 'Hello' },
        { type: 'finished', reason: 'stop', usage: NO_USAGE },
      ];
    }),
    conversations: {} as AgentRuntime['conversations'],
    approvals: {} as AgentRuntime['approvals'],
    ready: async () => true,
    ...change,
  };
}

function turns(run: (request: TurnRequest) => AgentEvents): AgentRuntime['run'] {
  return (request) => turnEvents(run(request));
}

const found = (change: Partial<AgentRuntime>) =>
  failing(casesOf((test) => agentRuntimeContract(test, { open: () => runtime(change), agent: 'a', timeLimit: 100 })));

const LISTS = 'lists the agent';
const LISTED = 'resolves every name that it lists';
const RUNS = 'runs a turn whose events have the grammar of `AgentEvent`';
const LEFT = 'reports a turn that its caller left as `failed`, without throwing';
const LEAVES = 'ends a turn when its reader leaves';
const CONCURRENT = 'runs turns at the same time';
const CLAIMS = 'gives a free idempotency key to one claim only';
const RELEASES = 'frees the key of a claim that is released';
const SCOPE = 'refuses a caller without the scope `chat`';
const KEY = 'refuses a session key that is not valid';
const CANCELS = 'cancels a turn for its caller';
const UNREAD = 'ends the events of a turn that nobody reads';
const READY = 'says whether turns can run';

t.test('passes a correct runtime', async (t) => {
  t.same(await found({}), []);
});

t.test('finds each broken promise', async (t) => {
  t.ok((await found({ resolve: () => ({ kind: 'unknown' }) })).includes('resolves the name of an agent'));
  t.same(await found({ list: () => [] }), [LISTS]);
  const listed = ['a', 'b'].map((name) => ({ name, kind: 'agent' as const, description: undefined }));
  t.same(await found({ list: () => listed }), [LISTED]);
  const endless = turns(async function* ({ signal }) {
    if (signal.aborted) throw new Error('aborted');
    yield [{ type: 'started', turnId: 'turn_1', agent: 'a' }];
  });
  t.same(await found({ run: endless }), [RUNS, LEFT, LEAVES, CONCURRENT, CLAIMS, SCOPE, KEY, CANCELS, UNREAD]);
  t.same(await found({ run: (request) => runtime().run({ ...request, signal: new AbortController().signal }) }), [LEFT, CLAIMS]);
  let running = 0;
  const alone = turns(async function* (request) {
    if (running++ > 0) throw new Error('busy');
    try {
      yield* runtime().run(request);
    } finally {
      running--;
    }
  });
  t.ok((await found({ run: alone })).includes(CONCURRENT));
  t.same(await found({ claim: async (key, fingerprint) => ({ kind: 'new', claim: { key, fingerprint, release: () => {} } }) }), [
    CLAIMS,
  ]);
  const kept: AgentRuntime['claim'] = async (key, fingerprint, account) => {
    const claimed = await claiming.claim(key, fingerprint, account);
    return claimed.kind === 'new' ? { kind: 'new', claim: { ...claimed.claim, release: () => {} } } : claimed;
  };
  const claiming = runtime();
  t.same(await found({ claim: kept, run: claiming.run }), [RELEASES]);
  const trusting = turns((request) => runtime().run({ ...request, principal: OPEN, session: undefined } as TurnRequest));
  t.same(await found({ run: trusting }), [CLAIMS, SCOPE, KEY]);
  t.same(await found({ ready: async () => false }), [READY]);
});
