import { nearest } from '@plugboard/kernel/contracts';
import { systemIds } from '@plugboard/kernel/internal';
import { didYouMean, table } from '../command/arguments.js';
import type { AnswerView } from './answer-view.js';
import {
  type ChatAgents,
  type ChatApproval,
  type ChatDecision,
  ChatError,
  type ChatTarget,
  type ChatTurn,
} from './conversation.js';

const COMMANDS: readonly (readonly [string, string])[] = [
  ['/help', 'shows this list'],
  ['/new', 'begins a new conversation'],
  ['/agent [NAME]', 'lists the agents, or talks to another one'],
  ['/sessions [KEY]', 'lists the sessions of the agent, or continues one'],
  ['/exit', 'ends the chat'],
];
/** Without the slash. */
const NAMES = COMMANDS.map(([usage]) => usage.split(' ')[0]?.slice(1) ?? '');

const COMMAND = /^\/([a-z]+)(?:\s+(.*))?$/;
/** What answers a request for approval. */
const DECISION = /^\s*(?:(y|yes|approve)|(n|no|deny)(?:\s+because\s+(.+))?)(?:\s+all)?\s*$/i;

/** The session to continue; a new one if none is named. */
interface ChatStart {
  readonly agent: string;
  readonly session: string | undefined;
}

/**
 * A chat with one agent at a time. It is given lines, each of which is a message, a command, or the
 * decision about a tool call that waits for approval.
 */
export class Chat {
  readonly #agents: ChatAgents;
  readonly #view: AnswerView;
  #agent: string;
  #session: ChatTurn['session'];
  /** The tool calls that wait, and the decisions about the first of them. */
  #waiting: readonly ChatApproval[] = [];
  #decisions: ChatDecision[] = [];
  #turn: AbortController | undefined;
  /** Whether the session has a turn. */
  #hasBegun = false;
  /** The turns and commands that failed. */
  failures = 0;

  constructor(agents: ChatAgents, view: AnswerView, { agent, session }: ChatStart) {
    this.#agents = agents;
    this.#view = view;
    this.#agent = agent;
    this.#session = session === undefined ? newSession() : { key: session, isOwn: false };
  }

  get agent(): string {
    return this.#agent;
  }

  /** The question that the next line answers; undefined if it is a message. */
  get question(): string | undefined {
    return this.#waiting.length > this.#decisions.length ? 'run it? (y, n, n because …)' : undefined;
  }

  /** The last line of the chat: how to continue a session that is kept. */
  get farewell(): string {
    if (!this.#hasBegun || !this.#agents.keepsSessions) return '';
    return `To go on: plugboard chat ${this.#agent} --session ${this.#session.key}, with the same options as before\n`;
  }

  /** Stops the answer. Returns whether there was one to stop. */
  stop(): boolean {
    const isRunning = this.#turn !== undefined && !this.#turn.signal.aborted;
    this.#turn?.abort();
    return isRunning;
  }

  /** Handles a line, with its answer. @returns whether the chat goes on. */
  async handle(line: string, isTerminal: boolean): Promise<boolean> {
    const [, command, argument] = COMMAND.exec(line.trim()) ?? [];
    if (command !== undefined && NAMES.includes(command)) return this.#command(command, argument?.trim() ?? '');
    if (command !== undefined && isTerminal) {
      this.#view.error(`unknown command /${command}${didYouMean(command, NAMES, '/')}; /help lists the commands`);
    } else if (this.question !== undefined && (isTerminal || DECISION.test(line))) {
      await this.#decide(line);
    } else if (line.trim() !== '') {
      this.#forgetApprovals(); // another message denies them
      await this.#send(line);
    }
    return true;
  }

  async #command(command: string, argument: string): Promise<boolean> {
    if (command === 'exit') return false;
    if (command === 'help') this.#print(COMMANDS);
    try {
      if (command === 'new') this.#begin(this.#agent, newSession());
      if (command === 'agent') await this.#chooseAgent(argument);
      if (command === 'sessions') await this.#chooseSession(argument);
    } catch (error) {
      this.#fail(error);
    }
    return true;
  }

  async #chooseAgent(name: string): Promise<void> {
    const targets = await this.#agents.targets();
    if (name !== '') return this.#begin(known(name, targets), newSession());
    this.#print(
      targets.map((one) => [
        one.name,
        [one.kind === 'model' ? 'a model, without an agent' : '', one.name === this.#agent ? '(this one)' : ''].join(' ').trim(),
      ]),
    );
  }

  async #chooseSession(key: string): Promise<void> {
    if (key !== '') {
      this.#begin(this.#agent, { key, isOwn: false });
      return this.recall();
    }
    const sessions = await this.#agents.sessions(this.#agent);
    if (sessions.length === 0) return this.#view.line(`${this.#agent} has no sessions yet`);
    this.#print(
      sessions.map((one) => [
        one.key,
        `${one.updatedAt.toISOString().slice(0, 16).replace('T', ' ')}  ${one.title}${one.key === this.#session.key ? ' (this one)' : ''}`,
      ]),
    );
  }

  #begin(agent: string, session: ChatTurn['session']): void {
    this.#forgetApprovals();
    this.#agent = agent;
    this.#session = session;
    this.#hasBegun = !session.isOwn;
    const where = this.#agents.keepsSessions || !session.isOwn ? `session ${session.key}` : 'a new conversation';
    this.#view.line(`Talking to ${agent}, ${where}`);
  }

  /** Shows the end of the session, if it is one to continue. */
  async recall(): Promise<void> {
    const { key, isOwn } = this.#session;
    const messages = isOwn ? undefined : await this.#agents.lastMessages(this.#agent, key);
    if (messages?.length === 0) this.#view.line(`${this.#agent} has no session ${key} yet: the next message begins it`);
    for (const { role, text } of messages ?? []) this.#view.past(role === 'user' ? 'you' : this.#agent, text);
  }

  async #decide(line: string): Promise<void> {
    const asked = this.#waiting[this.#decisions.length];
    const [, yes, no, reason] = DECISION.exec(line) ?? [];
    if (asked === undefined || (yes === undefined && no === undefined)) {
      return this.#view.error('answer y to run it, n to deny it, or "n because" and the reason');
    }
    this.#decisions.push({ id: asked.id, approve: yes !== undefined, reason });
    if (this.question !== undefined) return this.#ask();
    const decisions = this.#decisions;
    this.#forgetApprovals();
    await this.#send(decisions);
  }

  /** Shows the next call that waits. */
  #ask(): void {
    const next = this.#waiting[this.#decisions.length];
    if (next !== undefined) this.#view.show(next);
  }

  async #send(input: ChatTurn['input']): Promise<void> {
    const turn = new AbortController();
    this.#turn = turn;
    this.#hasBegun = true;
    const waiting: ChatApproval[] = [];
    this.#view.begin();
    try {
      const { signal } = turn;
      for await (const event of this.#agents.run({ agent: this.#agent, session: this.#session, input, signal })) {
        if (event.kind === 'approval') waiting.push(event);
        else this.#view.show(event);
      }
      this.#view.end(waiting.length > 0);
      this.#waiting = waiting;
      this.#ask();
    } catch (error) {
      if (turn.signal.aborted) this.#view.line('(stopped)');
      else this.#fail(error);
    } finally {
      this.#turn = undefined;
    }
  }

  #fail(error: unknown): void {
    if (!(error instanceof ChatError)) throw error;
    this.failures++;
    this.#view.error(error.message);
  }

  #forgetApprovals(): void {
    this.#waiting = [];
    this.#decisions = [];
  }

  #print(rows: readonly (readonly [string, string])[]): void {
    for (const row of table(rows).split('\n')) this.#view.line(row);
  }
}

/** @throws ChatError if there is no agent or model of that name. */
export function known(name: string, targets: readonly ChatTarget[]): string {
  const names = targets.map((one) => one.name);
  if (names.includes(name)) return name;
  const near = nearest(name, names);
  const of = (kind: ChatTarget['kind']) => targets.flatMap((one) => (one.kind === kind ? [one.name] : [])).join(', ');
  const all = [of('agent'), of('model') && `models: ${of('model')}`].filter((part) => part !== '');
  throw new ChatError(`unknown agent "${name}"${near === undefined ? '' : ` (did you mean ${near}?)`}; known: ${all.join('; ')}`);
}

function newSession(): ChatTurn['session'] {
  return { key: `chat-${systemIds.base62(12)}`, isOwn: true };
}
