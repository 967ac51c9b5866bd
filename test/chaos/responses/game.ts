import { strict as assert } from 'node:assert';
import { setTimeout as wait } from 'node:timers/promises';
import { type ChatRequest, eventually, type ModelServer, type Script } from '@plugboard/testing';
import { assertGrammar, type SentEvent } from '../../../plugins/open-responses/test/support/events.js';
import { Exchange, overChat, overHttp, type ResponseBody, Socket } from './clients.js';
import { areEqual, type Conversation, EMPTY, linesOf, outputOf, roundAfter, says } from './conversation.js';
import type { CreateMove, Move, OtherMove } from './moves.js';
import type { ServerLife } from './server-life.js';
import { type Ending, type Surface, Turn, type TurnRequest } from './turn.js';
import { answerTo, isClientCall, lastText, type Round, scriptOf, textOf, wordsOf } from './words.js';

/** Milliseconds after which what should have happened never will. */
const LIMIT = 10_000;
/** Milliseconds until a request is queued, and until a turn that lost its client has ended. */
const SETTLED = 50;

const CANCELLED: Ending = { status: 'incomplete', reason: 'cancelled' };
const LOOKUP = { type: 'function', name: 'lookup', parameters: { type: 'object', properties: { of: { type: 'string' } } } };

interface Session {
  conversation: Conversation;
  /** The first runs, the others wait. */
  readonly queue: Turn[];
}

/** A connection of the game, and what it must remember: the last response of each lane. */
interface Connection {
  readonly socket: Socket;
  readonly memory: Map<string, Turn>;
}

/**
 * Plays a program against a whole server and a scripted model server, and holds what they do
 * against what the reference says: which responses there are, what the model server is shown, how
 * each response ends, that its events are consecutive and the same for every reader, and that what
 * was reported as kept is kept, and nothing else.
 *
 * Everything is predicted before the server can act on it: only answers that wait leave something
 * open, and how they end is decided by the move that ends them. The model server therefore knows
 * what each of its requests must look like.
 */
export class Game {
  readonly #name: string;
  readonly #server: ServerLife;
  readonly #turns: Turn[] = [];
  readonly #sessions = new Map<string, Session>();
  readonly #connections = new Map<Surface, Connection>();
  readonly #faults: string[] = [];
  readonly #played: string[] = [];
  /** Sessions of chains that were there before. */
  #before = new Set<string>();

  /** @param name begins the name of everything in it, so that games can share a server. */
  constructor(name: string, server: ServerLife, models: ModelServer) {
    this.#name = name;
    this.#server = server;
    for (const key of ['x', 'y']) this.#sessions.set(`${name}-${key}`, { conversation: EMPTY, queue: [] });
    models.respond(({ body }) => this.#modelAnswers(body));
  }

  /** Turns that were played, and how many of them are part of a conversation. */
  get counts(): { readonly turns: number; readonly kept: number } {
    return { turns: this.#turns.length, kept: this.#turns.filter(({ isKept }) => isKept).length };
  }

  /** @throws Error that says what was played. */
  async play(moves: readonly Move[]): Promise<void> {
    try {
      this.#before = new Set(await this.#chainSessions());
      for (const move of moves) {
        if (move.move === 'create') await this.#create(move);
        else await this.#other(move);
        await this.#settle();
      }
      await this.#finish();
    } catch (error) {
      throw new Error(`${(error as Error).message}\nplayed:\n${this.#played.join('\n')}`, { cause: error });
    } finally {
      for (const { goOn, exchange } of this.#turns) {
        goOn.resolve();
        exchange.leave();
      }
      for (const { socket } of this.#connections.values()) socket.close();
    }
  }

  // What clients ask for.

  async #create(move: CreateMove): Promise<void> {
    if (isSocket(move.surface)) await this.#connect(move.surface);
    const request = this.#requestOf(move);
    if (request === undefined) return;
    const session = request.session === undefined ? undefined : this.#session(request.session);
    const [running, ...waiting] = session?.queue ?? [];
    const busy = running === undefined ? 'enqueue' : move.busy;
    if (busy !== 'enqueue' && (isSocket(request.surface) || waiting.length > 0)) return;

    const turn = new Turn(this.#turns.length, request, this.#server.life);
    const { previous, resent, session: named, input, ...rest } = request;
    const others = { previous: previous?.number, resent: resent?.number, input: 'say' in input ? 'says' : input };
    this.#log(`turn ${turn.number}`, { ...rest, session: named, ...others, busy });
    const isUnknown = previous !== undefined && !this.#isContinuable(previous, request.surface);
    if (isUnknown || busy === 'reject') {
      this.#send(turn, busy);
      const outcome = await this.#within(turn.exchange.ended, `the refusal of turn ${turn.number}`);
      const refusal = isUnknown ? { status: 400, code: 'previous_response_not_found' } : { status: 409, code: 'session_busy' };
      assert.deepEqual(outcome, { is: 'refused', ...refusal }, `turn ${turn.number} is refused`);
      if (isUnknown) this.#evict(request);
      return;
    }
    this.#turns.push(turn);
    if (busy === 'interrupt' && running) this.#conclude(running, false, { status: 'incomplete', reason: 'interrupted' });
    turn.prompts.add(this.#server.prompt);
    session?.queue.push(turn);
    if (!session || session.queue[0] === turn) this.#begin(turn);
    this.#send(turn, busy);
    if (turn.isQueued) await wait(SETTLED);
    if (turn.isWaiting) await this.#inAnswer(turn);
  }

  /** The request of a move; undefined if it makes no sense now. */
  #requestOf(move: CreateMove): TurnRequest | undefined {
    const { surface } = move;
    const isChat = surface.startsWith('chat');
    const lane = isSocket(surface) ? move.lane : '';
    // The next response of a lane begins after this one.
    const isLaneBusy = (turn: Turn) =>
      turn.isKept === undefined && turn.request.surface === surface && turn.request.lane === lane && !turn.isLeft;
    if (isSocket(surface) && this.#turns.some(isLaneBusy)) return undefined;

    let session: string | undefined;
    let previous: Turn | undefined;
    if (move.continues === 'session') session = pick([...this.#sessions.keys()], move.which);
    if (move.continues === 'response' && !isChat)
      previous = pickLast(
        this.#turns.filter(({ id, isKept }) => id !== undefined && isKept !== false),
        move.which,
      );
    let resent: Turn | undefined;
    if (move.continues === 'resent' && !isChat && surface !== 'live') resent = pickLast(this.#turns.filter(isWhole), move.which);
    const isImplied = surface === 'live' && session === undefined && previous === undefined;
    if (isImplied) previous = this.#connections.get('live')?.memory.get(lane);
    if (isImplied && previous?.request.session !== undefined) {
      // A conversation that was named holds for the connection.
      session = previous.request.session;
      previous = undefined;
    }

    const from = previous ?? resent;
    const before = session === undefined ? from?.isKept && from.after : this.#lastOf(this.#session(session));
    const name = `${this.#name}t${this.#turns.length}`;
    const words = says(name, this.#roundsOf(move), move.end);
    const answered = before && !isChat && move.answers && before.open.length > 0 ? before.words : undefined;
    // A client that repeats calls has their results.
    if (resent && resent.after.open.length > 0 && !answered) return undefined;
    return {
      surface,
      stored: !isChat && move.stored,
      input: before && answered ? { outputs: before.open, by: before.by } : { say: words },
      text: textOf(answered ?? words),
      session,
      previous,
      resent,
      isImplied: isImplied && (previous !== undefined || session !== undefined),
      lane,
      instructions: move.instructs && !isChat ? `Instructions of ${name}.` : undefined,
    };
  }

  #roundsOf({ surface, rounds }: CreateMove): readonly Round[] {
    // Chat completions ignore client tools.
    if (surface.startsWith('chat')) return rounds.filter((round) => !round.includes('c'));
    return rounds;
  }

  /** The conversation of a session; undefined while a turn may change it. */
  #lastOf({ conversation, queue }: Session): Conversation | undefined {
    return queue.length === 0 ? conversation : undefined;
  }

  #send(turn: Turn, busy: CreateMove['busy']): void {
    const { request, exchange } = turn;
    const { surface, stored, input, text, session, previous, resent, isImplied, lane, instructions } = request;
    const { url } = this.#server;
    const headers: Record<string, string> = busy === 'enqueue' ? {} : { 'x-session-busy': busy };
    if (surface === 'chat' || surface === 'chat-stream') {
      const body = { model: 'assistant', stream: surface === 'chat-stream', messages: [{ role: 'user', content: text }] };
      overChat(exchange, `${url}/v1/chat/completions`, { body: { ...body, ...(session && { session_id: session }) }, headers });
      return;
    }
    const callId = (id: string) => this.#turns[Number('outputs' in input && input.by)]?.callIds.get(id);
    turn.input =
      'say' in input
        ? [{ type: 'message', role: 'user', content: text }]
        : input.outputs.map((id) => ({ type: 'function_call_output', call_id: callId(id), output: outputOf(id) }));
    const fields = {
      model: 'assistant',
      input: 'say' in input && !resent ? text : [...(resent?.items ?? []), ...turn.input],
      store: stored,
      tools: [LOOKUP],
      ...(session && !isImplied && { conversation: session }),
      ...(previous && !isImplied && { previous_response_id: previous.id }),
      ...(instructions && { instructions }),
    };
    if (isSocket(surface)) this.#connections.get(surface)?.socket.create(exchange, lane, fields);
    else overHttp(exchange, `${url}/v1/responses`, { body: { ...fields, stream: surface === 'stream' }, headers });
  }

  async #connect(surface: 'socket' | 'live'): Promise<Connection> {
    const known = this.#connections.get(surface);
    if (known?.socket.isOpen) return known;
    const socket = await Socket.open(this.#server.url, surface === 'live' ? '/v1/live' : '/v1/responses');
    const connection = { socket, memory: new Map() };
    this.#connections.set(surface, connection);
    return connection;
  }

  async #other({ move, which, how }: OtherMove): Promise<void> {
    const known = this.#turns.filter(({ id }) => id !== undefined);
    const waiting = this.#turns.filter((turn) => turn.isWaiting);
    switch (move) {
      case 'release':
        return this.#at(waiting, which, move, (turn) => this.#release(turn));
      case 'cancel':
        return this.#at(known, which, move, (turn) => this.#cancel(turn, how));
      case 'delete':
        return this.#at(known, which, move, (turn) => this.#delete(turn));
      case 'race': {
        const alone = waiting.filter(
          ({ id, request }) => id !== undefined && request.stored && this.#queueOf(request).length <= 1,
        );
        return this.#at(alone, which, move, (turn) => this.#race(turn, how));
      }
      case 'get':
        return this.#at(known, which, move, (turn) => this.#get(turn));
      case 'resume':
        return this.#at(known, which, move, (turn) => this.#resume(turn, how));
      case 'leave':
        return this.#leave(waiting, which);
      case 'reload':
        this.#log(move, {});
        await this.#server.reload(how % 2 === 1);
        for (const turn of this.#turns) if (turn.isQueued) turn.prompts.add(this.#server.prompt);
        return;
      case 'stop':
        return this.#stop(how % 2 === 0);
      case 'kill':
        this.#log(move, {});
        for (const turn of this.#open().toReversed()) {
          turn.isKilled = true;
          this.#conclude(turn, false, undefined);
        }
        await this.#server.kill();
        return this.#startAgain();
    }
  }

  async #at(turns: readonly Turn[], which: number, move: string, work: (turn: Turn) => Promise<void>): Promise<void> {
    const turn = pick(turns, which);
    if (!turn) return;
    this.#log(move, { turn: turn.number });
    await work(turn);
  }

  async #release(turn: Turn): Promise<void> {
    this.#conclude(turn, true);
    turn.goOn.resolve();
    const next = this.#queueOf(turn.request)[0];
    if (next?.isWaiting) await this.#inAnswer(next);
  }

  async #cancel(turn: Turn, how: number): Promise<void> {
    const { id = '', isKept, request } = turn;
    const connection = this.#connections.get(request.surface);
    const isRunning = isKept === undefined;
    if (isRunning && !request.stored && (turn.isLeft || !connection)) return;
    if (isRunning) this.#conclude(turn, false, CANCELLED);
    if (isRunning && (!request.stored || how % 2 === 1)) {
      const { socket } = request.stored ? await this.#connect('socket') : (connection as Connection);
      socket.cancel(id);
    } else {
      const { status, body } = await this.#call('POST', `/v1/responses/${id}/cancel`);
      if (this.#mustExist(turn) !== undefined)
        assert.equal(status, this.#mustExist(turn) ? 200 : 404, `cancelling turn ${turn.number}`);
      if (status === 200 && isRunning)
        assert.deepEqual([body.status, body.incomplete_details?.reason], ['incomplete', 'cancelled']);
      if (status === 200 && !isRunning) this.#assertSame(turn, body);
    }
    await this.#afterwards(turn);
  }

  async #delete(turn: Turn): Promise<void> {
    const isRunning = turn.isKept === undefined;
    const mustExist = this.#mustExist(turn);
    if (isRunning && turn.request.stored) this.#conclude(turn, false, CANCELLED);
    const { status } = await this.#call('DELETE', `/v1/responses/${turn.id}`);
    if (mustExist !== undefined) assert.equal(status, mustExist ? 200 : 404, `deleting turn ${turn.number}`);
    turn.isDeleted ||= turn.request.stored;
    if (isRunning && turn.request.stored) await this.#afterwards(turn);
    assert.equal((await this.#call('GET', `/v1/responses/${turn.id}`)).status, 404, `turn ${turn.number} is gone`);
  }

  /** The server decides: what it reports is what has to be so. */
  async #race(turn: Turn, how: number): Promise<void> {
    const path = `/v1/responses/${turn.id}`;
    const isDeleted = how % 8 > 3;
    const end = () => (isDeleted ? this.#call('DELETE', path) : this.#call('POST', `${path}/cancel`));
    if (how % 4 > 0) turn.goOn.resolve();
    if (how % 4 > 1) await wait((how % 4) - 1);
    const ending = end();
    turn.goOn.resolve();
    const { status, body } = await ending;
    assert.equal(status, 200, `turn ${turn.number} is there`);
    turn.isDeleted = isDeleted;
    const outcome = turn.isLeft ? undefined : await this.#within(turn.exchange.ended, `the end of turn ${turn.number}`);
    const reported = outcome?.is === 'ended' ? outcome.status : body.status;
    this.#conclude(turn, reported === 'completed', undefined);
  }

  async #get(turn: Turn): Promise<void> {
    const { status, body } = await this.#call('GET', `/v1/responses/${turn.id}`);
    const mustExist = this.#mustExist(turn);
    if (mustExist !== undefined) assert.equal(status, mustExist ? 200 : 404, `turn ${turn.number} can be read`);
    if (status !== 200) return;
    if (turn.isKept === undefined)
      assert.equal(body.status, turn.isQueued ? 'queued' : 'in_progress', `turn ${turn.number} runs`);
    else this.#assertSame(turn, body);
  }

  async #resume(turn: Turn, how: number): Promise<void> {
    const { id = '', request, life, isDeleted } = turn;
    turn.compareEvents();
    // Not after the last event: nothing follows it.
    const count = turn.eventCount - (turn.isKept === undefined ? 0 : 1);
    const after = count <= 0 ? -1 : (how % count) - (how % 5 === 0 ? 1 : 0);
    const reader = new Exchange();
    if (how % 2 === 0) {
      const query = `stream=true${after < 0 ? '' : `&starting_after=${after}`}`;
      overHttp(reader, `${this.#server.url}/v1/responses/${id}?${query}`, { method: 'GET' });
    } else (await Socket.open(this.#server.url, '/v1/responses')).resume(reader, id, after);
    const isGone = !request.stored || isDeleted || (life !== this.#server.life && !this.#server.isDurable);
    const isOld = life !== this.#server.life;
    if (isGone || isOld) {
      const outcome = await this.#within(reader.ended, `resuming turn ${turn.number}`);
      const refusal = isGone ? { status: 404, code: 'response_not_found' } : { status: 410, code: 'response_events_expired' };
      if (isGone || this.#mustExist(turn))
        assert.deepEqual(outcome, { is: 'refused', ...refusal }, `turn ${turn.number} cannot be resumed`);
      return;
    }
    // The events of a response that was not streamed may be gone when it has ended.
    if (turn.isKept === undefined) turn.readers.push(reader);
    else if ((await this.#within(reader.ended, `resuming turn ${turn.number}`)).is !== 'refused') turn.readers.push(reader);
    else assert.equal(request.surface, 'http', `turn ${turn.number} can be resumed`);
    if (turn.readers.includes(reader) && turn.isKept !== undefined)
      assert.equal(turn.nextNumber(after, reader.events), after + 1, `turn ${turn.number} is resumed after event ${after}`);
  }

  /** The client of a response disconnects, and with it those of all others of its connection. */
  async #leave(waiting: readonly Turn[], which: number): Promise<void> {
    const turn = pick(
      waiting.filter(({ isLeft }) => !isLeft),
      which,
    );
    if (!turn) return;
    const { surface } = turn.request;
    this.#log('leave', { turn: turn.number });
    const leaving = isSocket(surface) ? this.#open().filter((one) => one.request.surface === surface && !one.isLeft) : [turn];
    for (const one of leaving) {
      one.isLeft = true;
      const goesOn = one.request.stored && surface !== 'http';
      if (!goesOn) this.#conclude(one, false, undefined);
    }
    turn.exchange.leave();
    this.#connections.delete(surface);
    await wait(SETTLED);
  }

  /** @param releases whether what runs may end while the server stops. */
  async #stop(releases: boolean): Promise<void> {
    await this.#settle();
    this.#log('stop', { releases });
    const open = this.#open();
    // Those behind the first ones have not begun, and are refused.
    for (const turn of open.toReversed()) if (turn.isQueued) this.#conclude(turn, false, undefined);
    for (const turn of open) {
      if (turn.isKept !== undefined) continue;
      if (releases) this.#conclude(turn, true);
      else this.#conclude(turn, false, { status: 'incomplete', reason: 'shutdown' });
    }
    await this.#server.terminate();
    if (releases) for (const turn of open) turn.goOn.resolve();
    assert.equal(
      await this.#within(this.#server.exit(), 'the end of the server'),
      releases || open.every(({ played }) => !played) ? 0 : 1,
      'the exit code',
    );
    await this.#startAgain();
  }

  async #startAgain(): Promise<void> {
    for (const { socket } of this.#connections.values()) socket.close();
    this.#connections.clear();
    if (!this.#server.isDurable) for (const session of this.#sessions.values()) session.conversation = EMPTY;
    await this.#server.start();
    await this.#settle();
  }

  // What must come of it.

  /** It is the turn's time in its conversation. */
  #begin(turn: Turn): void {
    const { session, previous, resent } = turn.request;
    turn.begin(session === undefined ? ((previous ?? resent)?.after ?? EMPTY) : this.#session(session).conversation);
    turn.prompts.add(this.#server.prompt);
    if (turn.played?.end !== 'waits') this.#conclude(turn, turn.played?.end !== 'fails');
  }

  /** Decides how a turn ends, and with it what those behind it begin with. */
  #conclude(
    turn: Turn,
    isKept: boolean,
    ending: Ending | undefined = isKept || turn.played?.end === 'fails' ? turn.naturalEnding : undefined,
  ): void {
    const { request } = turn;
    turn.isKept = isKept;
    turn.ending = ending;
    const memory = turn.isLeft ? undefined : this.#connections.get(request.surface)?.memory;
    if (isKept) memory?.set(request.lane, turn);
    if (ending?.status === 'failed' && !request.isImplied) this.#evict(request);
    if (request.session === undefined) return;
    const session = this.#session(request.session);
    const place = session.queue.indexOf(turn);
    session.queue.splice(place, 1);
    if (place > 0) return;
    if (isKept) session.conversation = turn.after;
    const [next] = session.queue;
    if (next && !next.played) this.#begin(next);
  }

  /** A continuation that fails evicts what it names from the memory of its connection. */
  #evict({ surface, previous }: TurnRequest): void {
    const memory = this.#connections.get(surface)?.memory;
    for (const [lane, turn] of memory ?? []) if (turn === previous) memory?.delete(lane);
  }

  /** Whether a request on that surface can continue a response. */
  #isContinuable(turn: Turn, surface: Surface): boolean {
    if (turn.isKept !== true) return false;
    if (turn.request.stored) return !turn.isDeleted && (turn.life === this.#server.life || this.#server.isDurable);
    if (turn.request.session !== undefined) return false;
    return [...(this.#connections.get(surface)?.memory.values() ?? [])].includes(turn);
  }

  /** Whether a response must be readable by its id; undefined if it need not, and may. */
  #mustExist(turn: Turn): boolean | undefined {
    const { request, isDeleted, isKept, life, ending } = turn;
    if (!request.stored || isDeleted) return false;
    if (life === this.#server.life) return true;
    if (!this.#server.isDurable) return false;
    if (isKept) return true;
    return ending === undefined || ending.reason === 'shutdown' ? undefined : true;
  }

  async #modelAnswers(request: ChatRequest): Promise<Script> {
    const text = lastText(request);
    const { prompt, lines } = linesOf(request);
    const round = roundAfter(lines);
    const candidates = this.#turns.filter((turn) => turn.played && turn.request.text === text && !turn.asked.has(round));
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
      this.#faults.push(
        `the model server was shown ${JSON.stringify({ prompt, lines })} instead of one of ${JSON.stringify(expected)}`,
      );
    }
    return scriptOf(wordsOf(text), round, turn?.goOn.promise ?? Promise.resolve());
  }

  /** Waits for everything that was decided, and compares it. */
  async #settle(): Promise<void> {
    for (const turn of this.#turns) {
      if (turn.isVerified || turn.isKept === undefined) continue;
      await this.#verify(turn);
      turn.isVerified = true;
    }
    assert.deepEqual(this.#faults, [], 'what the model server was shown');
  }

  async #verify(turn: Turn): Promise<void> {
    const { number, ending, exchange, isLeft, request, isResponse } = turn;
    if (isLeft) {
      if (ending && this.#mustExist(turn)) await this.#untilRead(turn, ending);
      return;
    }
    const outcome = await this.#within(exchange.ended, `the end of turn ${number}`);
    if (this.#faults.length > 0) return;
    if (ending === undefined) {
      if (!turn.isKept && outcome.is === 'ended') assert.notEqual(outcome.status, 'completed', `turn ${number} is not kept`);
      return;
    }
    const { status, reason } = ending;
    const isCut = reason === 'interrupted' || reason === 'shutdown';
    if (isCut && (!isResponse || request.surface === 'http')) {
      assert.notEqual(outcome.is === 'ended' && outcome.status, 'completed', `turn ${number} is cut short`);
      return;
    }
    const seen = outcome.is === 'ended' ? { is: outcome.is, status: outcome.status, reason: outcome.reason } : outcome;
    const isPlain = !isResponse || (request.surface === 'http' && status === 'failed');
    assert.deepEqual(seen, { is: 'ended', status, reason: isPlain ? undefined : reason }, `how turn ${number} ends`);
    if (request.surface === 'http' || !isResponse) {
      if (outcome.is === 'ended' && outcome.response) this.#assertOutput(turn, outcome.response);
      return;
    }
    turn.compareEvents();
    const events = turn.events.filter(({ type }) => !type.startsWith('svc:'));
    assertGrammar(events.map((event, index) => ({ ...event, sequence_number: index })) as unknown as SentEvent[]);
    for (const reader of turn.readers) await this.#within(reader.ended, `the end of a reader of turn ${number}`);
    turn.compareEvents();
    if (outcome.is === 'ended' && outcome.response) this.#assertOutput(turn, outcome.response);
  }

  /** What a response shows is what the model said in this turn. */
  #assertOutput({ number, played, callIds, request: { input, text } }: Turn, { status, output }: ResponseBody): void {
    if (status !== 'completed' || !played) return;
    const words = wordsOf(text);
    const first = Math.min(...played.shown.keys());
    const begun = 'say' in input ? 0 : first;
    const lines = played.after.lines.slice(played.shown.get(begun)?.length);
    const calls = lines.filter((line) => line.startsWith('call ')).map((line) => line.slice('call '.length));
    for (const { call_id: id, arguments: given } of output.filter(({ type }) => type === 'function_call'))
      callIds.set(JSON.parse(String(given)).of, String(id));
    assert.deepEqual([...callIds.keys()].toSorted(), calls.filter(isClientCall).toSorted(), `the client calls of turn ${number}`);
    const own = output.filter(({ type }) => type === 'mcp_call').length;
    assert.equal(own, calls.filter((id) => !isClientCall(id)).length, `the server calls of turn ${number}`);
    const texts = output.filter(({ type }) => type === 'message').map(({ content }) => (content as { text: string }[])[0]?.text);
    assert.deepEqual(texts, played.end === 'calls' ? [] : [answerTo(words.name)], `the text of turn ${number}`);
  }

  /** A response reads as its client saw it end. */
  #assertSame({ number, exchange, isKept, ending }: Turn, body: ResponseBody): void {
    const { outcome } = exchange;
    if (outcome?.is === 'ended' && outcome.response) assert.deepEqual(body, outcome.response, `turn ${number} as it is read`);
    if (isKept === false) assert.notEqual(body.status, 'completed', `turn ${number} is not kept`);
    if (ending)
      assert.deepEqual(
        [body.status, body.incomplete_details?.reason],
        [ending.status, ending.reason],
        `turn ${number} as it is read`,
      );
  }

  async #untilRead(turn: Turn, { status, reason }: Ending): Promise<void> {
    await this.#within(
      eventually(
        async () => !['queued', 'in_progress'].includes((await this.#call('GET', `/v1/responses/${turn.id}`)).body.status),
      ),
      `the end of turn ${turn.number} without its client`,
    );
    const { body } = await this.#call('GET', `/v1/responses/${turn.id}`);
    assert.deepEqual([body.status, body.incomplete_details?.reason], [status, reason], `how turn ${turn.number} ends`);
    this.#assertOutput(turn, body);
  }

  /** Ends what runs, continues what is kept, and deletes everything. */
  async #finish(): Promise<void> {
    await this.#releaseAll();
    const stored = this.#turns.filter(({ id, request }) => id !== undefined && request.stored);
    for (const turn of stored) await this.#get(turn);
    const base = {
      move: 'create',
      which: 0,
      rounds: [],
      end: 'answers',
      answers: true,
      instructs: false,
      lane: '',
      busy: 'enqueue',
    } as const;
    for (const [which] of [...this.#sessions].entries()) {
      await this.#create({ ...base, surface: 'chat', stored: false, continues: 'session', which });
      await this.#settle();
    }
    for (const turn of stored.filter((one) => this.#isContinuable(one, 'http')).slice(-4)) {
      const known = this.#turns.filter(({ id, isKept }) => id !== undefined && isKept !== false);
      await this.#create({
        ...base,
        surface: 'http',
        stored: true,
        continues: 'response',
        which: known.length - 1 - known.indexOf(turn),
      });
      await this.#releaseAll();
    }
    for (const turn of this.#turns) if (turn.id !== undefined && turn.request.stored && !turn.isDeleted) await this.#delete(turn);
    await this.#settle();
    const left = (await this.#chainSessions()).filter((key) => !this.#before.has(key));
    // What a kill cut off may have begun a session.
    if (!this.#turns.some(({ isKilled }) => isKilled))
      assert.deepEqual(left, [], 'the sessions of chains are gone with their responses');
  }

  // Helpers.

  #open(): readonly Turn[] {
    return this.#turns.filter(({ isKept }) => isKept === undefined);
  }

  #session(key: string): Session {
    const session = this.#sessions.get(key);
    if (!session) throw new Error(`there is no session ${key}`);
    return session;
  }

  #queueOf({ session }: TurnRequest): readonly Turn[] {
    return session === undefined ? [] : this.#session(session).queue;
  }

  /** Lets everything come to its end. */
  async #releaseAll(): Promise<void> {
    for (let open = this.#open(); open.length > 0; open = this.#open()) {
      for (const turn of open) if (turn.isWaiting) await this.#release(turn);
      await this.#settle();
    }
    await this.#settle();
  }

  /** Waits until the model is in the middle of the answer. */
  async #inAnswer(turn: Turn): Promise<void> {
    const { number, inAnswer, exchange, isLeft } = turn;
    const ended = isLeft ? [] : [exchange.ended];
    await this.#within(Promise.race([inAnswer.promise, ...ended]), `the answer of turn ${number}`);
    if (exchange.outcome && !isLeft)
      assert.fail(`turn ${number} ended with ${JSON.stringify(exchange.outcome)} before its answer`);
    if (!['http', 'chat', 'chat-stream'].includes(turn.request.surface) && !isLeft)
      await this.#within(
        eventually(async () => exchange.id !== undefined),
        `the id of turn ${number}`,
      );
  }

  /** Waits for what a turn that ended leaves behind. */
  async #afterwards(turn: Turn): Promise<void> {
    if (turn.isLeft) await wait(SETTLED);
    const next = this.#queueOf(turn.request)[0];
    if (next?.isWaiting) await this.#inAnswer(next);
  }

  /** The newest sessions that were made for a chain of responses. */
  async #chainSessions(): Promise<readonly string[]> {
    const { body } = await this.#call('GET', '/v1/conversations?limit=100');
    const { data } = body as unknown as { data: readonly { readonly key: string }[] };
    return data.map(({ key }) => key).filter((key) => key.startsWith('resp_'));
  }

  async #call(method: string, path: string): Promise<{ readonly status: number; readonly body: ResponseBody }> {
    const response = await this.#within(fetch(this.#server.url + path, { method }), `${method} ${path}`);
    return { status: response.status, body: (await response.json()) as ResponseBody };
  }

  async #within<T>(work: Promise<T>, what: string): Promise<T> {
    const timer = new AbortController();
    const late = wait(LIMIT, undefined, { signal: timer.signal }).then(() => {
      throw new Error(`${what}: nothing after ${LIMIT / 1000} s; ${this.#faults.join('\n')}`);
    });
    late.catch(() => {});
    try {
      return await Promise.race([work, late]);
    } finally {
      timer.abort();
    }
  }

  #log(what: string, fields: object): void {
    this.#played.push(`${what} ${JSON.stringify(fields)}`);
  }
}

function isSocket(surface: Surface): surface is 'socket' | 'live' {
  return surface === 'socket' || surface === 'live';
}

/** Whether a client knows everything that was said in the turn's conversation. */
function isWhole(turn: Turn): boolean {
  const { isKept, request, exchange } = turn;
  const { outcome } = exchange;
  if (isKept !== true || turn.closesCalls || request.session !== undefined || outcome?.is !== 'ended' || !outcome.response)
    return false;
  const before = request.previous ?? request.resent;
  return before === undefined || isWhole(before);
}

/** From the end: the newest is the first. */
function pickLast<T>(all: readonly T[], which: number): T | undefined {
  return all[all.length - 1 - (which % Math.max(1, all.length))];
}

function pick<T>(all: readonly T[], which: number): T | undefined {
  return all[which % Math.max(1, all.length)];
}
