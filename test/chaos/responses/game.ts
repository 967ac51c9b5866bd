import { strict as assert } from 'node:assert';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type ModelServer } from '@plugboard/testing';
import { Exchange, overHttp, Socket } from './clients.js';
import { EMPTY } from './conversation.js';
import type { CreateMove, Move, OtherMove } from './moves.js';
import { pick, Requests } from './requests.js';
import type { ServerLife } from './server-life.js';
import { type Ending, Turn } from './turn.js';
import { Verifier } from './verifier.js';
import { type Connection, isSocket, World } from './world.js';

/** Milliseconds until a request is queued, and until a turn that lost its client has ended. */
const SETTLED = 50;

const CANCELLED: Ending = { status: 'incomplete', reason: 'cancelled' };

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
  readonly #world: World;
  readonly #requests: Requests;
  readonly #verifier: Verifier;
  readonly #played: string[] = [];
  /** Sessions of chains that were there before. */
  #before = new Set<string>();

  /** @param name begins the name of everything in it, so that games can share a server. */
  constructor(name: string, server: ServerLife, models: ModelServer) {
    this.#world = new World(name, server, models);
    this.#requests = new Requests(this.#world);
    this.#verifier = new Verifier(this.#world);
  }

  /** Turns that were played, and how many of them are part of a conversation. */
  get counts(): { readonly turns: number; readonly kept: number } {
    return { turns: this.#world.turns.length, kept: this.#world.turns.filter(({ isKept }) => isKept).length };
  }

  /** @throws Error that says what was played. */
  async play(moves: readonly Move[]): Promise<void> {
    try {
      this.#before = new Set(await this.#world.chainSessions());
      for (const move of moves) {
        if (move.move === 'create') await this.#create(move);
        else await this.#other(move);
        await this.#verifier.settle();
      }
      await this.#finish();
    } catch (error) {
      throw new Error(`${(error as Error).message}\nplayed:\n${this.#played.join('\n')}`, { cause: error });
    } finally {
      for (const { goOn, exchange } of this.#world.turns) {
        goOn.resolve();
        exchange.leave();
      }
      for (const { socket } of this.#world.connections.values()) socket.close();
    }
  }

  async #create(move: CreateMove): Promise<void> {
    if (isSocket(move.surface)) await this.#world.connect(move.surface);
    const request = this.#requests.requestOf(move);
    if (request === undefined) return;
    const session = request.session === undefined ? undefined : this.#world.session(request.session);
    const [running, ...waiting] = session?.queue ?? [];
    const busy = running === undefined ? 'enqueue' : move.busy;
    if (busy !== 'enqueue' && (isSocket(request.surface) || waiting.length > 0)) return;

    const turn = new Turn(this.#world.turns.length, request, this.#world.server.life);
    const { previous, resent, session: named, input, ...rest } = request;
    const others = { previous: previous?.number, resent: resent?.number, input: 'say' in input ? 'says' : input };
    this.#log(`turn ${turn.number}`, { ...rest, session: named, ...others, busy });
    const isUnknown = previous !== undefined && !this.#world.isContinuable(previous, request.surface);
    if (isUnknown || busy === 'reject') {
      this.#requests.send(turn, busy);
      const outcome = await this.#world.within(turn.exchange.ended, `the refusal of turn ${turn.number}`);
      const refusal = isUnknown ? { status: 400, code: 'previous_response_not_found' } : { status: 409, code: 'session_busy' };
      assert.deepEqual(outcome, { is: 'refused', ...refusal }, `turn ${turn.number} is refused`);
      if (isUnknown) this.#world.evict(request);
      return;
    }
    this.#world.turns.push(turn);
    if (busy === 'interrupt' && running) this.#world.conclude(running, false, { status: 'incomplete', reason: 'interrupted' });
    turn.prompts.add(this.#world.server.prompt);
    session?.queue.push(turn);
    if (!session || session.queue[0] === turn) this.#world.begin(turn);
    this.#requests.send(turn, busy);
    if (turn.isQueued) await wait(SETTLED);
    if (turn.isWaiting) await this.#inAnswer(turn);
  }

  async #other({ move, which, how }: OtherMove): Promise<void> {
    const known = this.#world.turns.filter(({ id }) => id !== undefined);
    const waiting = this.#world.turns.filter((turn) => turn.isWaiting);
    switch (move) {
      case 'release':
        return this.#at(waiting, which, move, (turn) => this.#release(turn));
      case 'cancel':
        return this.#at(known, which, move, (turn) => this.#cancel(turn, how));
      case 'delete':
        return this.#at(known, which, move, (turn) => this.#delete(turn));
      case 'race': {
        const alone = waiting.filter(
          ({ id, request }) => id !== undefined && request.stored && this.#world.queueOf(request).length <= 1,
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
        await this.#world.server.reload(how % 2 === 1);
        for (const turn of this.#world.turns) if (turn.isQueued) turn.prompts.add(this.#world.server.prompt);
        return;
      case 'stop':
        return this.#stop(how % 2 === 0);
      case 'kill':
        this.#log(move, {});
        for (const turn of this.#world.open().toReversed()) {
          turn.isKilled = true;
          this.#world.conclude(turn, false, undefined);
        }
        await this.#world.server.kill();
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
    this.#world.conclude(turn, true);
    turn.goOn.resolve();
    const next = this.#world.queueOf(turn.request)[0];
    if (next?.isWaiting) await this.#inAnswer(next);
  }

  async #cancel(turn: Turn, how: number): Promise<void> {
    const { id = '', isKept, request } = turn;
    const connection = this.#world.connections.get(request.surface);
    const isRunning = isKept === undefined;
    if (isRunning && !request.stored && (turn.isLeft || !connection)) return;
    if (isRunning) this.#world.conclude(turn, false, CANCELLED);
    if (isRunning && (!request.stored || how % 2 === 1)) {
      const { socket } = request.stored ? await this.#world.connect('socket') : (connection as Connection);
      socket.cancel(id);
    } else {
      const { status, body } = await this.#world.call('POST', `/v1/responses/${id}/cancel`);
      if (this.#world.mustExist(turn) !== undefined)
        assert.equal(status, this.#world.mustExist(turn) ? 200 : 404, `cancelling turn ${turn.number}`);
      if (status === 200 && isRunning)
        assert.deepEqual([body.status, body.incomplete_details?.reason], ['incomplete', 'cancelled']);
      if (status === 200 && !isRunning) this.#verifier.assertSame(turn, body);
    }
    await this.#afterwards(turn);
  }

  async #delete(turn: Turn): Promise<void> {
    const isRunning = turn.isKept === undefined;
    const mustExist = this.#world.mustExist(turn);
    if (isRunning && turn.request.stored) this.#world.conclude(turn, false, CANCELLED);
    const { status } = await this.#world.call('DELETE', `/v1/responses/${turn.id}`);
    if (mustExist !== undefined) assert.equal(status, mustExist ? 200 : 404, `deleting turn ${turn.number}`);
    turn.isDeleted ||= turn.request.stored;
    if (isRunning && turn.request.stored) await this.#afterwards(turn);
    assert.equal((await this.#world.call('GET', `/v1/responses/${turn.id}`)).status, 404, `turn ${turn.number} is gone`);
  }

  /** The server decides: what it reports is what has to be so. */
  async #race(turn: Turn, how: number): Promise<void> {
    const path = `/v1/responses/${turn.id}`;
    const isDeleted = how % 8 > 3;
    const end = () => (isDeleted ? this.#world.call('DELETE', path) : this.#world.call('POST', `${path}/cancel`));
    if (how % 4 > 0) turn.goOn.resolve();
    if (how % 4 > 1) await wait((how % 4) - 1);
    const ending = end();
    turn.goOn.resolve();
    const { status, body } = await ending;
    assert.equal(status, 200, `turn ${turn.number} is there`);
    turn.isDeleted = isDeleted;
    const outcome = turn.isLeft ? undefined : await this.#world.within(turn.exchange.ended, `the end of turn ${turn.number}`);
    const reported = outcome?.is === 'ended' ? outcome.status : body.status;
    this.#world.conclude(turn, reported === 'completed', undefined);
  }

  async #get(turn: Turn): Promise<void> {
    const { status, body } = await this.#world.call('GET', `/v1/responses/${turn.id}`);
    const mustExist = this.#world.mustExist(turn);
    if (mustExist !== undefined) assert.equal(status, mustExist ? 200 : 404, `turn ${turn.number} can be read`);
    if (status !== 200) return;
    if (turn.isKept === undefined)
      assert.equal(body.status, turn.isQueued ? 'queued' : 'in_progress', `turn ${turn.number} runs`);
    else this.#verifier.assertSame(turn, body);
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
      overHttp(reader, `${this.#world.server.url}/v1/responses/${id}?${query}`, { method: 'GET' });
    } else (await Socket.open(this.#world.server.url, '/v1/responses')).resume(reader, id, after);
    const isGone = !request.stored || isDeleted || (life !== this.#world.server.life && !this.#world.server.isDurable);
    const isOld = life !== this.#world.server.life;
    if (isGone || isOld) {
      const outcome = await this.#world.within(reader.ended, `resuming turn ${turn.number}`);
      const refusal = isGone ? { status: 404, code: 'response_not_found' } : { status: 410, code: 'response_events_expired' };
      if (isGone || this.#world.mustExist(turn))
        assert.deepEqual(outcome, { is: 'refused', ...refusal }, `turn ${turn.number} cannot be resumed`);
      return;
    }
    // The events of a response that was not streamed may be gone when it has ended.
    if (turn.isKept === undefined) turn.readers.push(reader);
    else if ((await this.#world.within(reader.ended, `resuming turn ${turn.number}`)).is !== 'refused') turn.readers.push(reader);
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
    const leaving = isSocket(surface)
      ? this.#world.open().filter((one) => one.request.surface === surface && !one.isLeft)
      : [turn];
    for (const one of leaving) {
      one.isLeft = true;
      const goesOn = one.request.stored && surface !== 'http';
      if (!goesOn) this.#world.conclude(one, false, undefined);
    }
    turn.exchange.leave();
    this.#world.connections.delete(surface);
    await wait(SETTLED);
  }

  /** @param releases whether what runs may end while the server stops. */
  async #stop(releases: boolean): Promise<void> {
    await this.#verifier.settle();
    this.#log('stop', { releases });
    const open = this.#world.open();
    // Those behind the first ones have not begun, and are refused.
    for (const turn of open.toReversed()) if (turn.isQueued) this.#world.conclude(turn, false, undefined);
    for (const turn of open) {
      if (turn.isKept !== undefined) continue;
      if (releases) this.#world.conclude(turn, true);
      else this.#world.conclude(turn, false, { status: 'incomplete', reason: 'shutdown' });
    }
    await this.#world.server.terminate();
    if (releases) for (const turn of open) turn.goOn.resolve();
    assert.equal(
      await this.#world.within(this.#world.server.exit(), 'the end of the server'),
      releases || open.every(({ played }) => !played) ? 0 : 1,
      'the exit code',
    );
    await this.#startAgain();
  }

  async #startAgain(): Promise<void> {
    for (const { socket } of this.#world.connections.values()) socket.close();
    this.#world.connections.clear();
    if (!this.#world.server.isDurable) for (const session of this.#world.sessions.values()) session.conversation = EMPTY;
    await this.#world.server.start();
    await this.#verifier.settle();
  }

  /** Ends what runs, continues what is kept, and deletes everything. */
  async #finish(): Promise<void> {
    await this.#releaseAll();
    const stored = this.#world.turns.filter(({ id, request }) => id !== undefined && request.stored);
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
    for (const [which] of [...this.#world.sessions].entries()) {
      await this.#create({ ...base, surface: 'chat', stored: false, continues: 'session', which });
      await this.#verifier.settle();
    }
    for (const turn of stored.filter((one) => this.#world.isContinuable(one, 'http')).slice(-4)) {
      const known = this.#world.turns.filter(({ id, isKept }) => id !== undefined && isKept !== false);
      await this.#create({
        ...base,
        surface: 'http',
        stored: true,
        continues: 'response',
        which: known.length - 1 - known.indexOf(turn),
      });
      await this.#releaseAll();
    }
    for (const turn of this.#world.turns)
      if (turn.id !== undefined && turn.request.stored && !turn.isDeleted) await this.#delete(turn);
    await this.#verifier.settle();
    const left = (await this.#world.chainSessions()).filter((key) => !this.#before.has(key));
    // What a kill cut off may have begun a session.
    if (!this.#world.turns.some(({ isKilled }) => isKilled))
      assert.deepEqual(left, [], 'the sessions of chains are gone with their responses');
  }

  /** Lets everything come to its end. */
  async #releaseAll(): Promise<void> {
    for (let open = this.#world.open(); open.length > 0; open = this.#world.open()) {
      for (const turn of open) if (turn.isWaiting) await this.#release(turn);
      await this.#verifier.settle();
    }
    await this.#verifier.settle();
  }

  /** Waits until the model is in the middle of the answer. */
  async #inAnswer(turn: Turn): Promise<void> {
    const { number, inAnswer, exchange, isLeft } = turn;
    const ended = isLeft ? [] : [exchange.ended];
    await this.#world.within(Promise.race([inAnswer.promise, ...ended]), `the answer of turn ${number}`);
    if (exchange.outcome && !isLeft)
      assert.fail(`turn ${number} ended with ${JSON.stringify(exchange.outcome)} before its answer`);
    if (!['http', 'chat', 'chat-stream'].includes(turn.request.surface) && !isLeft)
      await this.#world.within(
        eventually(async () => exchange.id !== undefined),
        `the id of turn ${number}`,
      );
  }

  /** Waits for what a turn that ended leaves behind. */
  async #afterwards(turn: Turn): Promise<void> {
    if (turn.isLeft) await wait(SETTLED);
    const next = this.#world.queueOf(turn.request)[0];
    if (next?.isWaiting) await this.#inAnswer(next);
  }

  #log(what: string, fields: object): void {
    this.#played.push(`${what} ${JSON.stringify(fields)}`);
  }
}
