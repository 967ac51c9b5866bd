import { setTimeout as wait } from 'node:timers/promises';
import type { ChatRequest, ModelServer, Script } from '@plugboard/testing';
import { type ResponseBody, Socket } from './clients.js';
import { areEqual, type Conversation, EMPTY, linesOf, roundAfter } from './conversation.js';
import type { ServerLife } from './server-life.js';
import type { Ending, Surface, Turn, TurnRequest } from './turn.js';
import { lastText, scriptOf, wordsOf } from './words.js';

/** Milliseconds after which what should have happened never will. */
const LIMIT = 10_000;

export interface Session {
  conversation: Conversation;
  /** The first runs, the others wait. */
  readonly queue: Turn[];
}

/** A connection of the game, and what it must remember: the last response of each lane. */
export interface Connection {
  readonly socket: Socket;
  readonly memory: Map<string, Turn>;
}

/**
 * What there is on the server as far as the game knows, and what must come of it: turns, sessions,
 * connections, and the end that each turn has.
 */
export class World {
  /** Begins the name of everything in it, so that games can share a server. */
  readonly name: string;
  readonly server: ServerLife;
  readonly turns: Turn[] = [];
  readonly sessions = new Map<string, Session>();
  readonly connections = new Map<Surface, Connection>();
  /** What the model server was shown and should not have been. */
  readonly faults: string[] = [];

  constructor(name: string, server: ServerLife, models: ModelServer) {
    this.name = name;
    this.server = server;
    for (const key of ['x', 'y']) this.sessions.set(`${name}-${key}`, { conversation: EMPTY, queue: [] });
    models.respond(({ body }) => this.modelAnswers(body));
  }

  async connect(surface: 'socket' | 'live'): Promise<Connection> {
    const known = this.connections.get(surface);
    if (known?.socket.isOpen) return known;
    const socket = await Socket.open(this.server.url, surface === 'live' ? '/v1/live' : '/v1/responses');
    const connection = { socket, memory: new Map() };
    this.connections.set(surface, connection);
    return connection;
  }

  /** It is the turn's time in its conversation. */
  begin(turn: Turn): void {
    const { session, previous, resent } = turn.request;
    turn.begin(session === undefined ? ((previous ?? resent)?.after ?? EMPTY) : this.session(session).conversation);
    turn.prompts.add(this.server.prompt);
    if (turn.played?.end !== 'waits') this.conclude(turn, turn.played?.end !== 'fails');
  }

  /** Decides how a turn ends, and with it what those behind it begin with. */
  conclude(
    turn: Turn,
    isKept: boolean,
    ending: Ending | undefined = isKept || turn.played?.end === 'fails' ? turn.naturalEnding : undefined,
  ): void {
    const { request } = turn;
    turn.isKept = isKept;
    turn.ending = ending;
    const memory = turn.isLeft ? undefined : this.connections.get(request.surface)?.memory;
    if (isKept) memory?.set(request.lane, turn);
    if (ending?.status === 'failed' && !request.isImplied) this.evict(request);
    if (request.session === undefined) return;
    const session = this.session(request.session);
    const place = session.queue.indexOf(turn);
    session.queue.splice(place, 1);
    if (place > 0) return;
    if (isKept) session.conversation = turn.after;
    const [next] = session.queue;
    if (next && !next.played) this.begin(next);
  }

  /** A continuation that fails evicts what it names from the memory of its connection. */
  evict({ surface, previous }: TurnRequest): void {
    const memory = this.connections.get(surface)?.memory;
    for (const [lane, turn] of memory ?? []) if (turn === previous) memory?.delete(lane);
  }

  /** Whether a request on that surface can continue a response. */
  isContinuable(turn: Turn, surface: Surface): boolean {
    if (turn.isKept !== true) return false;
    if (turn.request.stored) return !turn.isDeleted && (turn.life === this.server.life || this.server.isDurable);
    if (turn.request.session !== undefined) return false;
    return [...(this.connections.get(surface)?.memory.values() ?? [])].includes(turn);
  }

  /** Whether a response must be readable by its id; undefined if it need not, and may. */
  mustExist(turn: Turn): boolean | undefined {
    const { request, isDeleted, isKept, life, ending } = turn;
    if (!request.stored || isDeleted) return false;
    if (life === this.server.life) return true;
    if (!this.server.isDurable) return false;
    if (isKept) return true;
    return ending === undefined || ending.reason === 'shutdown' ? undefined : true;
  }

  async modelAnswers(request: ChatRequest): Promise<Script> {
    const text = lastText(request);
    const { prompt, lines } = linesOf(request);
    const round = roundAfter(lines);
    const candidates = this.turns.filter((turn) => turn.played && turn.request.text === text && !turn.asked.has(round));
    const turn = candidates.find(({ request: { instructions }, prompts, played, isResent }) => {
      const shown = played?.shown.get(round);
      return (
        shown && areEqual(shown, lines, isResent) && (instructions === undefined ? prompts.has(prompt) : prompt === instructions)
      );
    });
    if (turn) {
      turn.asked.add(round);
      if (wordsOf(text).rounds.length === round) turn.inAnswer.resolve();
    } else {
      const expected = candidates.map(({ number, prompts, played, request: { instructions } }) => ({
        turn: number,
        prompt: instructions ?? [...prompts],
        lines: played?.shown.get(round),
      }));
      this.faults.push(
        `the model server was shown ${JSON.stringify({ prompt, lines })} instead of one of ${JSON.stringify(expected)}`,
      );
    }
    return scriptOf(wordsOf(text), round, turn?.goOn.promise ?? Promise.resolve());
  }

  open(): readonly Turn[] {
    return this.turns.filter(({ isKept }) => isKept === undefined);
  }

  session(key: string): Session {
    const session = this.sessions.get(key);
    if (!session) throw new Error(`there is no session ${key}`);
    return session;
  }

  queueOf({ session }: TurnRequest): readonly Turn[] {
    return session === undefined ? [] : this.session(session).queue;
  }

  /** The newest sessions that were made for a chain of responses. */
  async chainSessions(): Promise<readonly string[]> {
    const { body } = await this.call('GET', '/v1/conversations?limit=100');
    const { data } = body as unknown as { data: readonly { readonly key: string }[] };
    return data.map(({ key }) => key).filter((key) => key.startsWith('resp_'));
  }

  async call(method: string, path: string): Promise<{ readonly status: number; readonly body: ResponseBody }> {
    const response = await this.within(fetch(this.server.url + path, { method }), `${method} ${path}`);
    return { status: response.status, body: (await response.json()) as ResponseBody };
  }

  async within<T>(work: Promise<T>, what: string): Promise<T> {
    const timer = new AbortController();
    const late = wait(LIMIT, undefined, { signal: timer.signal }).then(() => {
      throw new Error(`${what}: nothing after ${LIMIT / 1000} s; ${this.faults.join('\n')}`);
    });
    late.catch(() => {});
    try {
      return await Promise.race([work, late]);
    } finally {
      timer.abort();
    }
  }
}

export function isSocket(surface: Surface): surface is 'socket' | 'live' {
  return surface === 'socket' || surface === 'live';
}
