import { overChat, overHttp } from './clients.js';
import { type Conversation, outputOf, says } from './conversation.js';
import type { CreateMove } from './moves.js';
import type { Turn, TurnRequest } from './turn.js';
import { type Round, textOf } from './words.js';
import { isSocket, type Session, type World } from './world.js';

const LOOKUP = { type: 'function', name: 'lookup', parameters: { type: 'object', properties: { of: { type: 'string' } } } };

/** Makes requests of moves, and sends them. */
export class Requests {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** The request of a move; undefined if it makes no sense now. */
  requestOf(move: CreateMove): TurnRequest | undefined {
    const { surface } = move;
    const isChat = surface.startsWith('chat');
    const lane = isSocket(surface) ? move.lane : '';
    // The next response of a lane begins after this one.
    const isLaneBusy = (turn: Turn) =>
      turn.isKept === undefined && turn.request.surface === surface && turn.request.lane === lane && !turn.isLeft;
    if (isSocket(surface) && this.#world.turns.some(isLaneBusy)) return undefined;

    let session: string | undefined;
    let previous: Turn | undefined;
    if (move.continues === 'session') session = pick([...this.#world.sessions.keys()], move.which);
    if (move.continues === 'response' && !isChat)
      previous = pickLast(
        this.#world.turns.filter(({ id, isKept }) => id !== undefined && isKept !== false),
        move.which,
      );
    let resent: Turn | undefined;
    if (move.continues === 'resent' && !isChat && surface !== 'live')
      resent = pickLast(this.#world.turns.filter(isWhole), move.which);
    const isImplied = surface === 'live' && session === undefined && previous === undefined;
    if (isImplied) previous = this.#world.connections.get('live')?.memory.get(lane);
    if (isImplied && previous?.request.session !== undefined) {
      // A conversation that was named holds for the connection.
      session = previous.request.session;
      previous = undefined;
    }

    const from = previous ?? resent;
    const before = session === undefined ? from?.isKept && from.after : this.#lastOf(this.#world.session(session));
    const name = `${this.#world.name}t${this.#world.turns.length}`;
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

  send(turn: Turn, busy: CreateMove['busy']): void {
    const { request, exchange } = turn;
    const { surface, stored, input, text, session, previous, resent, isImplied, lane, instructions } = request;
    const { url } = this.#world.server;
    const headers: Record<string, string> = busy === 'enqueue' ? {} : { 'x-session-busy': busy };
    if (surface === 'chat' || surface === 'chat-stream') {
      const body = { model: 'assistant', stream: surface === 'chat-stream', messages: [{ role: 'user', content: text }] };
      overChat(exchange, `${url}/v1/chat/completions`, { body: { ...body, ...(session && { session_id: session }) }, headers });
      return;
    }
    const callId = (id: string) => this.#world.turns[Number('outputs' in input && input.by)]?.callIds.get(id);
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
    if (isSocket(surface)) this.#world.connections.get(surface)?.socket.create(exchange, lane, fields);
    else overHttp(exchange, `${url}/v1/responses`, { body: { ...fields, stream: surface === 'stream' }, headers });
  }
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

export function pick<T>(all: readonly T[], which: number): T | undefined {
  return all[which % Math.max(1, all.length)];
}
