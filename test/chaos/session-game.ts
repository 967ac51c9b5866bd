import { setImmediate } from 'node:timers/promises';
import type { Message } from '@plugboard/kernel';
import type { SessionId } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import { OPEN } from '../../kernel/src/contracts/callers/principal.js';
import { ModelError } from '../../kernel/src/contracts/model/model-connector.js';
import type { Interceptor } from '../../kernel/src/contracts/runtime/interceptor.js';
import {
  accountOf,
  call,
  collect,
  END,
  type ModelStep,
  request,
  ScriptedModel,
  singleTool,
  startRuntime,
  user,
} from '../../plugins/agent-runtime/test/harness.js';
import { type Attempt, check, type StoredHistory, type Verdict } from './checker.js';
import { answerTo, INTERRUPTED_NOTE, roundsOf, textOfTurn } from './known-turns.js';
import { MortalStore, type ProcessLife } from './mortal-store.js';

const SETTLE_TIMEOUT = 5_000;
const MINUTE = 60_000;
/** After so many unhindered steps, a turn that has not ended never will. */
const MOST_STEPS = 500;

/** What a turn is like: those that break are never kept. */
const KINDS = ['plain', 'tool', 'tools', 'fails', 'breaks'] as const;
const AGENTS = ['assistant', 'keeper'] as const;

/** A turn that was sent, and its caller, who may hang up. */
interface Open {
  readonly attempt: Attempt;
  readonly caller: AbortController;
}

const breaking: Interceptor = (turn, next) => {
  if (String(turn.messages.at(-1)?.content).endsWith('breaks')) throw new Error('a defect');
  return next(turn);
};

/**
 * The real runtime, over a store that outlives it, with all that happens to sessions as moves of a
 * game. What was sent and what came of it is written down, and `verdict` holds the store against
 * it. Time stands still but for the moves that let it pass.
 */
export class SessionGame {
  readonly #clock = new ManualClock();
  readonly #store = new MortalStore(this.#clock);
  readonly #journal: Attempt[] = [];
  /** Each session's agent. Copies are added. */
  readonly #sessions = new Map<string, string>([
    ['a', 'assistant'],
    ['k', 'keeper'],
  ]);
  /**
   * Attempts that a deletion has buried: whatever their callers are told, they must not be there.
   */
  readonly #buried = new Set<Attempt>();
  /** The history that the model received with each turn, as user texts. */
  readonly #sent = new Map<string, readonly string[]>();
  #open = new Set<Open>();
  /** Model and tool calls that wait to go on. */
  #gates: (() => void)[] = [];
  #life: ProcessLife = this.#store.live();
  #app: Awaited<ReturnType<typeof startRuntime>> | undefined;
  #count = 0;

  static async begin(): Promise<SessionGame> {
    const game = new SessionGame();
    await game.#start();
    return game;
  }

  /** The moves. Each takes two numbers that say of which session, turn or kind it is. */
  readonly moves = {
    send: async (which: number, kind: number) => this.#send(this.#session(which), pick(KINDS, kind)),
    interrupt: async (which: number, kind: number) => this.#send(this.#session(which), pick(KINDS, kind), 'interrupt'),
    /** A model or a tool continues. */
    goOn: async (which: number) => this.#gates.splice(which % Math.max(1, this.#gates.length), 1)[0]?.(),
    /** A caller hangs up, and sees nothing of what becomes of its turn. */
    drop: async (which: number) => [...this.#open][which % Math.max(1, this.#open.size)]?.caller.abort(),
    /** From now on commits wait, and then they do not any more. */
    slow: async () => {
      this.#store.isSlow = true;
    },
    release: () => this.#store.release(),
    wait: async () => this.#clock.advance(SETTLE_TIMEOUT),
    /** No session is used for long enough to leave memory. */
    evict: async () => {
      if (this.#open.size === 0) this.#clock.advance(16 * MINUTE);
    },
    crash: async (which: number) => {
      if (which % 2 === 0) await this.#store.applyUntold();
      await this.#rise();
    },
    reopen: async () => {
      // It rejects if turns had to be ended.
      await this.#settled(this.#runtime.stop(new AbortController().signal).catch(() => {}));
      await this.#rise();
    },
    cancel: async (which: number) =>
      void (await this.#atConversation(which, (id) => this.#runtime.conversations.cancel(id, OPEN, accountOf()))),
    delete: async (which: number) => {
      const key = this.#session(which);
      if (!(await this.#atConversation(which, (id) => this.#runtime.conversations.delete(id, OPEN)))) return;
      for (const attempt of this.#journal.filter(({ session }) => session === key)) {
        attempt.saw = 'refusal';
        this.#buried.add(attempt);
      }
    },
    /**
     * A copy is a session like any other, which must hold the first turns of the other and nothing
     * else.
     */
    fork: async (which: number, turns: number) => {
      const key = this.#session(which);
      const copy = `copy ${++this.#count} of ${key}`;
      const source = await this.#kept(key);
      if (source.version === 0) return;
      const count = 1 + (turns % source.version);
      await this.#atConversation(which, (id) => this.#runtime.conversations.fork(id, { key: copy, turns: count }, OPEN));
      this.#sessions.set(copy, this.#agent(key));
      for (const [index, text] of wordsIn(source.messages).entries()) {
        const kept = this.#journal.find((one) => one.session === key && one.text === text && !this.#buried.has(one));
        this.#journal.push({ who: key, text, session: copy, saw: index < count ? (kept?.saw ?? 'end') : 'refusal' });
      }
    },
  };

  /** Lets everything come to its end, and sends each session one turn more. */
  async finish(): Promise<void> {
    await this.#store.release();
    await this.#quiet();
    this.#clock.advance(2 * MINUTE);
    for (const key of this.#sessions.keys()) {
      await this.#send(key, 'tool');
      const last = this.#journal.at(-1);
      await this.#quiet();
      if (last?.saw !== 'end') throw new Error(`the session ${key} does not take the next turn`);
    }
  }

  /** What came of it so far. */
  async verdict(): Promise<Verdict> {
    await ticks();
    const kept = new Map<string, StoredHistory>();
    for (const key of this.#sessions.keys()) kept.set(key, await this.#kept(key));
    const keepers = [...this.#sessions].filter(([, agent]) => agent === 'keeper').map(([key]) => key);
    const verdict = check(this.#journal, kept, new Set(keepers));
    for (const [key, { messages }] of kept) verdict.invalid.push(...this.#misled(key, messages));
    return verdict;
  }

  /**
   * Turns that are kept behind others of which their model knew nothing, or without those that it
   * knew of. The stored part of an interrupted turn is not an answer.
   */
  #misled(key: string, messages: readonly Message[]): readonly string[] {
    const faults: string[] = [];
    for (const [index, { role, content }] of messages.entries()) {
      const sent = this.#sent.get(String(content))?.join();
      if (role !== 'user' || sent === undefined || messages[index + 1]?.content === INTERRUPTED_NOTE) continue;
      const before = wordsIn(messages.slice(0, index)).join();
      if (sent !== before) faults.push(`${key}: "${content}" follows "${before}", but the model was sent "${sent}"`);
    }
    return faults;
  }

  async #send(key: string, kind: (typeof KINDS)[number], busy: 'enqueue' | 'interrupt' = 'enqueue'): Promise<void> {
    const attempt: Attempt = { session: key, who: key, text: textOfTurn(key, ++this.#count, kind), saw: 'nothing' };
    this.#journal.push(attempt);
    const caller = new AbortController();
    const target = this.#app?.target(this.#agent(key));
    if (!target) throw new Error('there is no server');
    const events = this.#runtime.run(
      request(target, { messages: [user(attempt.text)], session: { key, busy }, signal: caller.signal }),
    );
    const open = { attempt, caller };
    this.#open.add(open);
    void collect(events).then((all) => {
      // The output of a dead process is lost.
      if (!this.#open.delete(open) || this.#buried.has(attempt)) return;
      if (all.at(-1)?.type === 'finished') attempt.saw = 'end';
      else if (!caller.signal.aborted && !this.#store.committing.has(attempt.text)) attempt.saw = 'refusal';
    });
  }

  /** The process dies with everything it was doing; another one starts from the store. */
  async #rise(): Promise<void> {
    this.#life.kill();
    // Whose turn was left behind was told of its end before the turn itself came to one: what was
    // asked in it is kept where the agent wants that.
    for (const attempt of this.#journal)
      if (!this.#buried.has(attempt) && this.#store.unended.includes(attempt.text)) attempt.saw = 'nothing';
    this.#open = new Set();
    this.#gates = [];
    this.#store.isSlow = false;
    this.#life = this.#store.live();
    await this.#start();
  }

  async #start(): Promise<void> {
    this.#app = await startRuntime({
      agents: {
        assistant: { model: 'fast', tools: ['clock'] },
        keeper: { model: 'fast', tools: ['clock'], onRestart: 'keep-input' },
      },
      models: { fast: new ScriptedModel(({ messages }) => this.#answer(messages)) },
      tools: {
        clock: singleTool(async (_, { signal }) => {
          await Promise.race([this.#gate(), new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))]);
          return 'noon';
        }),
      },
      interceptors: [breaking],
      store: this.#life.store,
      clock: this.#clock,
    });
  }

  #answer(messages: readonly Message[]): ModelStep[] {
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const text = String(messages[asked]?.content);
    const round = messages.slice(asked).filter(({ role }) => role === 'tool').length;
    this.#sent.set(text, wordsIn(messages).slice(0, -1));
    const gate = this.#gate();
    if (text.endsWith('fails')) return [gate, new ModelError('it says no.', { retryable: false })];
    if (round < roundsOf(text))
      return [gate, call(`call_${asked}_${round}`, 'clock', { n: round }), { type: 'end', reason: 'tool_calls' }];
    return [{ type: 'text', text: answerTo(text) }, gate, END];
  }

  #gate(): Promise<void> {
    return new Promise((resolve) => this.#gates.push(resolve));
  }

  /** Runs everything until no work is left. */
  async #quiet(): Promise<void> {
    for (let i = 0; this.#open.size > 0; i++) {
      if (i === MOST_STEPS) throw new Error(`turns do not end: ${[...this.#open].map(({ attempt }) => attempt.text)}`);
      await ticks();
      for (const goOn of this.#gates.splice(0)) goOn();
      await ticks();
      if (this.#gates.length === 0 && this.#open.size > 0) this.#clock.advance(SETTLE_TIMEOUT);
    }
  }

  /**
   * Does something with a session as its caller would.
   *
   * @returns whether there was one: a session whose first turn still runs is not there yet.
   */
  async #atConversation(which: number, work: (id: string) => Promise<unknown>): Promise<boolean> {
    const info = await this.#store.kept.info(this.#id(this.#session(which)));
    if (info) await this.#settled(work(info.conversation));
    return info !== undefined;
  }

  /** Waits for what may have to wait until turns are left behind. */
  async #settled(work: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    await ticks();
    for (let i = 0; !isOver; i++) {
      if (i === MOST_STEPS) throw new Error('what was asked of a session does not end');
      this.#clock.advance(SETTLE_TIMEOUT);
      await ticks();
    }
    await over;
  }

  async #kept(key: string): Promise<StoredHistory> {
    const id = this.#id(key);
    // Both in one go: turns may be at work meanwhile.
    const [{ messages }, info] = await Promise.all([this.#store.kept.load(id), this.#store.kept.info(id)]);
    return { version: info?.turns ?? 0, messages };
  }

  get #runtime() {
    if (!this.#app) throw new Error('there is no server');
    return this.#app.runtime;
  }

  #session(which: number): string {
    return pick([...this.#sessions.keys()], which);
  }

  #agent(key: string): string {
    return this.#sessions.get(key) ?? AGENTS[0];
  }

  #id(key: string): SessionId {
    return { project: 'default', agent: this.#agent(key), key };
  }
}

export type Move = keyof SessionGame['moves'];

function pick<T>(all: readonly T[], which: number): T {
  return all[which % all.length] as T;
}

/** What users said, in order. */
function wordsIn(messages: readonly Message[]): readonly string[] {
  return messages.filter(({ role }) => role === 'user').map(({ content }) => String(content));
}

async function ticks(): Promise<void> {
  for (let i = 0; i < 3; i++) await setImmediate();
}
