import { strict as assert } from 'node:assert';
import { eventually } from '@plugboard/testing';
import { assertGrammar, type SentEvent } from '../../../plugins/open-responses/test/support/events.js';
import type { ResponseBody } from './clients.js';
import type { Ending, Turn } from './turn.js';
import { answerTo, isClientCall, wordsOf } from './words.js';
import type { World } from './world.js';

/** Holds what clients saw of turns that ended against what must come of them. */
export class Verifier {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Waits for everything that was decided, and compares it. */
  async settle(): Promise<void> {
    for (const turn of this.#world.turns) {
      if (turn.isVerified || turn.isKept === undefined) continue;
      await this.#verify(turn);
      turn.isVerified = true;
    }
    assert.deepEqual(this.#world.faults, [], 'what the model server was shown');
  }

  async #verify(turn: Turn): Promise<void> {
    const { number, ending, exchange, isLeft, request, isResponse } = turn;
    if (isLeft) {
      if (ending && this.#world.mustExist(turn)) await this.#untilRead(turn, ending);
      return;
    }
    const outcome = await this.#world.within(exchange.ended, `the end of turn ${number}`);
    if (this.#world.faults.length > 0) return;
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
    for (const reader of turn.readers) await this.#world.within(reader.ended, `the end of a reader of turn ${number}`);
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
  assertSame({ number, exchange, isKept, ending }: Turn, body: ResponseBody): void {
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
    await this.#world.within(
      eventually(
        async () => !['queued', 'in_progress'].includes((await this.#world.call('GET', `/v1/responses/${turn.id}`)).body.status),
      ),
      `the end of turn ${turn.number} without its client`,
    );
    const { body } = await this.#world.call('GET', `/v1/responses/${turn.id}`);
    assert.deepEqual([body.status, body.incomplete_details?.reason], [status, reason], `how turn ${turn.number} ends`);
    this.#assertOutput(turn, body);
  }
}
