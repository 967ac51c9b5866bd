/** What becomes of calls that had begun when their process died. */
import type { AgentEvent, Principal, SessionStore, StateChange, Tool, ToolInterceptor } from '@plugboard/kernel';
import { type InterruptedTurn, OPEN, type TurnRequest } from '@plugboard/kernel/contracts';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import {
  answerWith,
  callTools,
  collect,
  type ModelStep,
  memoryStore,
  request,
  ScriptedModel,
  senderFor,
  startRuntime,
  storeWith,
  tool,
  user,
} from '../../harness.js';

const ID = { project: 'default', agent: 'assistant', key: 's' };
const INTERRUPTED = 'The call began to run, but was interrupted. Whether it took effect is unknown, and it was not run again.';
const DAY = 24 * 60 * 60_000;

/** A store that outlives the processes of this test. */
class LastingStore {
  readonly turns = new Map<string, InterruptedTurn>();
  readonly written: StateChange[] = [];
  /** Makes writes to the state fail. */
  isFull = false;
  readonly store: SessionStore;

  constructor(clock: ManualClock) {
    const kept = memoryStore(clock);
    const { state } = kept;
    this.store = storeWith({
      ...methodsOf(kept),
      isVolatile: false,
      begin: async (id, { turnId, input }) => void this.turns.set(turnId, { id, turnId, input }),
      abandon: async (_, turnId) => void this.turns.delete(turnId),
      commit: async (id, turn) => {
        await kept.commit(id, turn);
        this.turns.delete(turn.turnId ?? '');
      },
      recover: async () => {
        const found = [...this.turns.values()];
        this.turns.clear();
        return found;
      },
      state: {
        get: (entry, key) => state.get(entry, key),
        list: (entry, page) => state.list(entry, page),
        change: async (changes) => {
          if (this.isFull) throw new Error('the disk is full');
          this.written.push(...changes);
          return state.change(changes);
        },
      },
    });
  }

  /** The keys of calls that are stored now. */
  async keys(): Promise<readonly string[]> {
    const written = new Set(this.written.map(({ entry }) => entry));
    const found = await Promise.all([...written].map((entry) => this.store.state.list(entry, { prefix: '' })));
    return found.flat().map(({ key }) => key);
  }
}

/** The methods of a class, which a spread leaves out. */
function methodsOf(store: SessionStore): SessionStore {
  return new Proxy(store, {
    ownKeys: () => [
      'load',
      'version',
      'create',
      'info',
      'find',
      'list',
      'setMetadata',
      'turns',
      'putSummary',
      'fork',
      'delete',
      'pendingToolCalls',
      'documents',
      'approvals',
      'idempotency',
    ],
    getOwnPropertyDescriptor: () => ({ configurable: true, enumerable: true }),
    get: (kept, name: keyof SessionStore) => {
      const member = kept[name];
      return typeof member === 'function' ? member.bind(kept) : member;
    },
  });
}

interface Life {
  readonly steps?: readonly (readonly ModelStep[])[];
  readonly agent?: object;
  readonly send?: Partial<Tool>;
  readonly interceptors?: Record<string, ToolInterceptor>;
}

/** Several lives of one server, over a store that stays. */
class World {
  readonly clock = new ManualClock();
  readonly kept = new LastingStore(this.clock);
  readonly #ids = new SequentialIds();
  /** The keys with which the tool ran, over all lives. */
  readonly ran: string[] = [];
  readonly principals: Principal[] = [];

  /** Starts the server. What ran before is dead: nothing waits for it any more. */
  async live({ steps = [], agent = {}, send = {}, interceptors = {} }: Life = {}) {
    const mail: Tool = {
      ...tool('send', () => 'sent', { to: { type: 'string' } }),
      effect: 'write',
      ...send,
      run: (input, call) => {
        this.ran.push(`${call.turnId}/${call.index}`);
        this.principals.push(call.principal);
        return send.run ? send.run(input, call) : `sent to ${input.to}`;
      },
    };
    const model = new ScriptedModel(steps);
    const app = await startRuntime({
      agents: { assistant: { model: 'fast', tools: ['mail'], ...agent } },
      models: { fast: model },
      tools: { mail: { tools: () => [mail, tool('look', () => 'nothing')] } },
      toolInterceptors: interceptors,
      store: this.kept.store,
      clock: this.clock,
      ids: this.#ids,
    });
    const say = (text: string, more: Partial<TurnRequest> = {}) =>
      collect(
        app.runtime.run(
          request(app.target(), { messages: [user(text)], session: { key: 's' }, ...more } as Partial<TurnRequest>),
        ),
      );
    return { ...app, model, say };
  }

  /** A server that dies while the tool runs. */
  async dieDuringCall(life: Life = {}, more: Partial<TurnRequest> = {}): Promise<void> {
    const begun = Promise.withResolvers<void>();
    const run = () => {
      begun.resolve();
      return new Promise<never>(() => {});
    };
    const steps = [callTools(['mail__send', { to: 'bob' }]), answerWith('Done.')];
    const { say } = await this.live({ steps, ...life, send: { run, ...life.send } });
    void say('Send it', more);
    await begun.promise;
  }

  async messages() {
    return (await this.kept.store.load(ID)).messages;
  }
}

/** What the model was told of calls, in its nth request. */
function told(model: ScriptedModel, nth = 0) {
  return (model.asked[nth]?.messages ?? []).flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

function resultIn(events: readonly AgentEvent[]) {
  return events.find((event) => event.type === 'tool-result');
}

t.test(
  'TC-3 a call that may write is stored with its key before it runs, its outcome after, and both until the commit',
  async (t) => {
    const world = new World();
    const during: (readonly string[])[] = [];
    const run = async () => {
      during.push(await world.kept.keys());
      return 'sent';
    };
    const steps = [callTools(['mail__send', { to: 'bob' }]), answerWith('Done.')];
    const { say } = await world.live({ steps, send: { run } });
    await say('Send it');
    t.strictSame(during, [[`call/${world.ran[0]}`]]);
    const [intent, outcome, ...others] = world.kept.written.map(({ text }) => JSON.parse(text ?? 'null'));
    t.match(intent, { session: ID, index: 0, call: { name: 'mail__send', arguments: '{"to":"bob"}' }, outcome: undefined });
    t.match(outcome, { session: ID, outcome: { content: 'sent', isError: false } });
    t.strictSame(others, []);
    t.strictSame(await world.kept.keys(), [], 'the commit removes them');
  },
);

t.test(
  'TC-3 a call that reads, a turn without a session, and a store that lasts no longer than the process store nothing',
  async (t) => {
    const steps = [callTools(['mail__look', {}]), answerWith('Done.')];
    const reading = new World();
    await (await reading.live({ steps })).say('Look');
    t.strictSame(reading.kept.written, []);

    const writing = [callTools(['mail__send', { to: 'bob' }]), answerWith('Done.')];
    const alone = new World();
    await (await alone.live({ steps: writing })).say('Send it', { session: undefined });
    t.strictSame([alone.ran.length, alone.kept.written.length], [1, 0]);

    const store = memoryStore();
    const change = t.capture(store.state, 'change');
    const app = await startRuntime({
      agents: { assistant: { model: 'fast', tools: ['mail'] } },
      models: { fast: new ScriptedModel(writing) },
      tools: { mail: { tools: () => [{ ...tool('send', () => 'sent'), effect: 'write' }] } },
      store,
    });
    t.match(resultIn(await senderFor(app)('Send it')), { content: 'sent' });
    t.equal(change().length, 0);
  },
);

t.test('TC-3 a call that cannot be stored does not run', async (t) => {
  const world = new World();
  world.kept.isFull = true;
  const { say, model } = await world.live({ steps: [callTools(['mail__send', { to: 'bob' }]), answerWith('Sorry.')] });
  t.match(resultIn(await say('Send it')), { content: 'The call did not run: the session store failed.', effect: undefined });
  t.strictSame([world.ran, told(model, 1)], [[], ['The call did not run: the session store failed.']]);
});

t.test('TC-3 an outcome that cannot be stored is told all the same, and a failed turn leaves nothing', async (t) => {
  const world = new World();
  const run = () => {
    world.kept.isFull = true;
    return 'sent';
  };
  const failing = [callTools(['mail__send', { to: 'bob' }]), [new Error('the model is gone')]];
  const { say } = await world.live({ steps: failing, send: { run } });
  t.match(resultIn(await say('Send it')), { content: 'sent' });
  world.kept.isFull = false;
  t.equal((await world.kept.keys()).length, 1, 'the store failed to remove it');

  const whole = new World();
  const next = await whole.live({ steps: failing });
  t.match((await next.say('Send it')).at(-1), { type: 'failed', failure: { toolsRan: true } });
  t.strictSame([await whole.kept.keys(), await whole.messages()], [[], []]);
});

t.test(
  'TC-4 after a crash the next turn of the session repeats a call that is keyed or idempotent, before its first model call',
  async (t) => {
    for (const safe of [{ keyed: true }, { effect: 'idempotent' }] as const) {
      const world = new World();
      await world.dieDuringCall({ send: safe });
      const { say, model, lines } = await world.live({ send: safe, steps: [answerWith('It was sent.'), answerWith('Yes.')] });
      t.match(
        lines.find(({ calls }) => calls),
        { calls: ['mail/send'], level: 'warn' },
      );
      t.strictSame(await world.kept.keys(), []);
      t.match(await world.messages(), [
        user('Send it'),
        { role: 'assistant', tool_calls: [{ function: { name: 'mail__send' } }] },
      ]);
      const events = await say('Was it sent?');
      t.match(
        events.find(({ type }) => type === 'tool-call'),
        { resumed: true, approval: undefined, name: 'mail__send' },
      );
      t.match(resultIn(events), { content: 'sent to bob', isError: false, effect: undefined });
      t.strictSame(told(model), ['sent to bob']);
      t.equal(world.ran.length, 2);
      t.equal(world.ran[0], world.ran[1], 'with its key');
      const [turn] = await world.kept.store.turns(ID, { limit: 1, order: 'desc' });
      t.match(JSON.parse(turn?.record ?? '{}'), {
        calls: [{ step: 0, state: 'completed', arguments: '{"to":"bob"}', tool: { entry: 'mail', name: 'send' } }],
        decisions: undefined,
      });
      await say('Sure?');
      t.equal(world.ran.length, 2, 'and once');
    }
  },
);

t.test('TC-4 verify(key) settles a call after a crash, and of any other one the model is told', async (t) => {
  const keys: string[] = [];
  const verify = (key: string) => {
    keys.push(key);
    return 'it was sent';
  };
  const verified = new World();
  await verified.dieDuringCall();
  const { say, model } = await verified.live({ send: { verify }, steps: [answerWith('Ok.')] });
  t.match(resultIn(await say('Well?')), { content: 'it was sent' });
  t.strictSame([keys, told(model)], [verified.ran, ['it was sent']]);

  const other = new World();
  await other.dieDuringCall();
  const life = await other.live({ steps: [answerWith('I do not know.')] });
  t.match(resultIn(await life.say('Well?')), { content: INTERRUPTED, isError: true, effect: 'unknown' });
  t.strictSame([other.ran.length, told(life.model)], [1, [INTERRUPTED]]);
  const [turn] = await other.kept.store.turns(ID, { limit: 1, order: 'desc' });
  t.match(JSON.parse(turn?.record ?? '{}').calls, [{ state: 'unknown' }]);
});

t.test('TC-4 the outcome that a call had before the crash is told', async (t) => {
  const world = new World();
  const stuck = new Promise<never>(() => {});
  const asked = Promise.withResolvers<void>();
  const steps = [
    callTools(['mail__send', { to: 'bob' }]),
    [
      {
        get type() {
          asked.resolve();
          return 'text' as const;
        },
        text: 'It is',
      },
      stuck,
    ],
  ];
  void (await world.live({ steps: steps as never })).say('Send it');
  await asked.promise;
  const { say, model } = await world.live({ steps: [answerWith('It was.')] });
  t.match(resultIn(await say('Was it sent?')), { content: 'sent to bob', effect: undefined });
  t.strictSame([told(model), world.ran.length], [['sent to bob'], 1]);
});

t.test('TC-4 a call is repeated for its own caller, whoever goes on with the session', async (t) => {
  const anna: Principal = { project: 'default', scopes: ['chat'], token: 'anna', tokenId: 'tok_anna' };
  const ben: Principal = { ...anna, token: 'ben', tokenId: 'tok_ben' };
  for (const [principal, next] of [
    [anna, ben],
    [OPEN, anna],
  ] as const) {
    const world = new World();
    await world.dieDuringCall({ send: { keyed: true } }, { principal });
    const { say } = await world.live({ send: { keyed: true }, steps: [answerWith('Ok.')] });
    await say('Well?', { principal: next });
    t.strictSame(world.principals[1], principal);
  }
});

t.test('TC-4 no call is repeated after a day, nor if its tool has changed or is gone', async (t) => {
  const keyed = { keyed: true } as const;
  const late = new World();
  await late.dieDuringCall({ send: keyed });
  late.clock.advance(DAY + 1);
  const old = await late.live({ send: keyed, steps: [answerWith('Ok.')] });
  t.match(resultIn(await old.say('Well?')), { content: INTERRUPTED });

  const inputSchema = { type: 'object', properties: { to: { type: 'string' }, cc: { type: 'string' } } };
  for (const changed of [{ inputSchema }, { name: 'post' }]) {
    const world = new World();
    await world.dieDuringCall({ send: keyed });
    const { say } = await world.live({ send: { ...keyed, ...changed }, steps: [answerWith('Ok.')] });
    t.match(resultIn(await say('Well?')), { content: INTERRUPTED });
    t.equal(world.ran.length, 1);
  }

  const asleep = new World();
  await asleep.dieDuringCall({ send: { effect: 'idempotent' } });
  asleep.clock.advance(DAY + 1);
  const { say } = await asleep.live({ send: { effect: 'idempotent' }, steps: [answerWith('Ok.')] });
  t.match(resultIn(await say('Well?')), { content: 'sent to bob' }, 'of an idempotent tool no key is needed');
});

t.test('TC-5 a crash while calls are settled, or while they are taken up, changes nothing', async (t) => {
  const world = new World();
  const keyed = { keyed: true } as const;
  await world.dieDuringCall({ send: keyed });
  // This life dies when the turn has been read, before its calls are part of the session.
  await world.kept.store.recover();
  await world.dieDuringCall({ send: keyed, steps: [] }); // and this one while it repeats the call
  const { say, model } = await world.live({ send: keyed, steps: [answerWith('Ok.')] });
  t.match(resultIn(await say('Well?')), { content: 'sent to bob' });
  t.strictSame([told(model), new Set(world.ran).size, world.ran.length], [['sent to bob'], 1, 3]);
  t.match((await world.messages())[0], { role: 'user', content: /^\[The message of an interrupted turn/ });
  t.strictSame(await world.kept.keys(), []);
});

t.test('TC-4 calls that began in a turn that had settled others are kept behind these', async (t) => {
  const world = new World();
  const keyed = { keyed: true } as const;
  await world.dieDuringCall({ send: keyed });
  let runs = 0;
  const begun = Promise.withResolvers<void>();
  const run = () => {
    runs++;
    if (runs === 1) return 'sent the first';
    begun.resolve();
    return new Promise<never>(() => {});
  };
  const second = await world.live({ send: { ...keyed, run }, steps: [callTools(['mail__send', { to: 'carl' }])] });
  void second.say('And carl');
  await begun.promise;
  const { say, model } = await world.live({ send: keyed, steps: [answerWith('Ok.')] });
  t.match(
    (await world.messages()).map(({ role, content }) => [role, content]),
    [
      ['user', 'Send it'],
      ['assistant', null],
      ['tool', 'sent the first'],
      ['user', 'And carl'],
      ['assistant', null],
    ],
  );
  await say('Well?');
  t.strictSame(told(model), ['sent the first', 'sent to carl']);
});

t.test('TC-4 calls are kept whatever the turn had before: approvals, a channel, a message that does not fit', async (t) => {
  const approved = new World();
  const agent = { approve: ['mail/look'] };
  const asking = await approved.live({ agent, steps: [callTools(['mail__look', {}], ['mail__look', { at: 2 }])] });
  const principal: Principal = { project: 'default', scopes: ['chat'], token: 'anna', tokenId: 'tok_anna' };
  const asked = await asking.say('Look', { principal });
  const [one, two] = asked.flatMap((event) => (event.type === 'approval' ? [event.code] : []));
  const begun = Promise.withResolvers<void>();
  const run = () => {
    begun.resolve();
    return new Promise<never>(() => {});
  };
  const acting = await approved.live({ agent, send: { run }, steps: [callTools(['mail__send', { to: 'bob' }])] });
  void acting.say(`approve ${one}\ndeny ${two}`, { principal });
  await begun.promise;
  const { say, model } = await approved.live({ agent, steps: [answerWith('Ok.')] });
  await say('Well?', { principal });
  t.strictSame(told(model), ['nothing', 'A person denied the call. It did not run.', INTERRUPTED]);

  const channel = new World();
  await channel.dieDuringCall({}, { commitState: () => [] });
  const life = await channel.live({ steps: [answerWith('Ok.')] });
  await life.say('Well?');
  t.match(life.model.asked[0]?.messages[0], { content: /^\[The message of an interrupted turn/ });

  const moved = new World();
  await moved.dieDuringCall();
  for (const [turnId, turn] of moved.kept.turns)
    moved.kept.turns.set(turnId, { ...turn, input: [{ role: 'tool', tool_call_id: 'call_gone', content: 'late' }] });
  await moved.kept.store.create(ID, { metadata: {}, messages: [user('Hello'), { role: 'assistant', content: 'Hi' }] });
  const next = await moved.live({ steps: [answerWith('Ok.')] });
  await next.say('Well?');
  t.match(next.model.asked[0]?.messages, [
    user('Hello'),
    {},
    { content: /^\[The message of an interrupted turn/ },
    {},
    { content: INTERRUPTED },
  ]);
});

t.test('TC-4 calls that cannot be kept are an error of the log, and do not prevent the start', async (t) => {
  const world = new World();
  await world.dieDuringCall();
  const { commit } = world.kept.store;
  Object.assign(world.kept.store, { commit: () => Promise.reject(new Error('the disk is full')) });
  const failing = async () => (await world.live()).lines.filter(({ level }) => level === 'error');
  t.match(await failing(), [{ msg: /could not store/ }]);
  t.match(await failing(), [{ msg: /could not store the calls/ }], 'nor later');
  Object.assign(world.kept.store, { shared: { count: async () => [] } });
  t.match(await failing(), [], 'with a shared store, they may be of a turn that runs');
  Object.assign(world.kept.store, { shared: undefined, commit });
  const { say } = await world.live({ steps: [answerWith('Ok.')] });
  t.match(resultIn(await say('Well?')), { content: INTERRUPTED });

  const open = new World();
  await open.dieDuringCall({ send: { keyed: true } });
  await open.live(); // takes the call up
  const [left] = await open.kept.store.turns(ID, { limit: 1, order: 'desc' });
  t.ok(left);
  await open.kept.store.state.change([
    {
      ...open.kept.written[0],
      key: 'call/turn_x/0',
      text: open.kept.written[0]?.text?.replace(/turn_\w+/, 'turn_x'),
    } as StateChange,
  ]);
  const { lines } = await open.live();
  t.match(lines.at(-1), { level: 'error', turn_id: 'turn_x', msg: /whether they took effect is unknown$/ });
});

t.test('TC-6 a copy of a session has such calls as of unknown effect', async (t) => {
  const world = new World();
  const keyed = { keyed: true } as const;
  await world.dieDuringCall({ send: keyed });
  const { runtime, target, model, say } = await world.live({ send: keyed, steps: [answerWith('Ok.'), answerWith('Ok.')] });
  await world.kept.store.fork(ID, 'copy', 1);
  await collect(runtime.run(request(target(), { messages: [user('Well?')], session: { key: 'copy' } })));
  t.match(told(model), [/^The call began to run, but was interrupted\. .* unknown: the conversation was copied/]);
  t.equal(world.ran.length, 1);
  await say('Well?');
  t.equal(world.ran.length, 2, 'the session itself goes on');
});
