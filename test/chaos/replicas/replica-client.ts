import { setTimeout as wait } from 'node:timers/promises';
import { type ClientOutcome, send } from '../client.js';
import { answerTo } from '../known-turns.js';
import type { Cluster } from './cluster.js';
import type { Journal, TimedAttempt } from './journal.js';

/** Milliseconds after which a client gives up on a server that does not answer. */
const PATIENCE = 30_000;
/** Milliseconds before a request is repeated. */
const PAUSE = 100;
/** A session is followed by another, so that histories stay short enough to be read often. */
const TURNS_PER_SESSION = 60;
const KINDS = ['plain', 'tool', 'plain', 'tools', 'count', 'count'];

/** Sessions that clients share, one after the other. */
export class Room {
  readonly agent: string;
  readonly #name: string;
  #turns = 0;

  constructor(name: string, agent: string) {
    this.#name = name;
    this.agent = agent;
  }

  /** For the next turn. */
  nextSession(): string {
    return this.#session(this.#turns++);
  }

  /** All that were used. */
  get sessions(): readonly string[] {
    return [...new Set(Array.from({ length: this.#turns }, (_, turn) => this.#session(turn)))];
  }

  #session(turn: number): string {
    return `${this.#name}-${Math.floor(turn / TURNS_PER_SESSION)}`;
  }
}

/**
 * Sends turns, each when it knows no more to do about the one before, each request to any server,
 * and writes down what it saw. With keys it repeats what broke off, on another server.
 */
export class ReplicaClient {
  /** Answers that did not fit, and refusals that nothing explains. */
  readonly faults: string[] = [];
  repeated = 0;
  /** By status; 0: the connection broke off. */
  readonly outcomes = new Map<number, number>();
  readonly room: Room;
  readonly #name: string;
  readonly #hasKeys: boolean;
  readonly #cluster: Cluster;
  readonly #journal: Journal;
  readonly #random: () => number;
  #unknown = 0;

  constructor(name: string, room: Room, hasKeys: boolean, cluster: Cluster, journal: Journal, random: () => number) {
    this.#name = name;
    this.room = room;
    this.#hasKeys = hasKeys;
    this.#cluster = cluster;
    this.#journal = journal;
    this.#random = random;
  }

  /**
   * Sends one turn, to the room's session unless another is named.
   * @returns the attempt as it ended.
   */
  async turn(session = this.room.nextSession()): Promise<TimedAttempt> {
    const kind = KINDS[Math.floor(this.#random() * KINDS.length)] ?? 'plain';
    // The order of turns is only known up to one whose outcome is not: what follows has another
    // name.
    const who = this.#unknown === 0 ? this.#name : `${this.#name}${this.#unknown}`;
    const attempt = this.#journal.send(session, who, kind, this.#hasKeys);
    const stream = this.#random() < 0.6;
    let failures = 0;
    for (let tries = 0; ; tries++) {
      const seen = await this.#request(attempt, stream);
      if (seen?.saw === 'end') {
        if (tries > 0) this.repeated++;
        if (!seen.text.endsWith(answerTo(attempt.text))) this.faults.push(`${attempt.text}: ${seen.text}`);
        this.#journal.end(attempt);
        return attempt;
      }
      const refusal = seen?.saw === 'refusal' ? seen.status : 0;
      if (seen) this.outcomes.set(refusal, (this.outcomes.get(refusal) ?? 0) + 1);
      if (![0, 200, 409, 502, 503].includes(refusal)) this.faults.push(`${attempt.text}: refused with ${refusal}`);
      const wasNotBegun = !seen || refusal === 503;
      if (refusal === 502 || refusal === 200) failures++;
      // The answer to a failure whose tools had begun is the same ever after.
      const isWorthAnother = wasNotBegun || (this.#hasKeys && failures < 3 && (refusal !== 409 || tries < 600));
      if (!isWorthAnother) {
        attempt.saw = refusal === 409 && tries === 0 ? 'refusal' : 'nothing';
        if (attempt.saw === 'nothing') this.#unknown++;
        return attempt;
      }
      await wait(PAUSE);
    }
  }

  /** @returns nothing if there is no server. */
  async #request({ session, text, key }: TimedAttempt, stream: boolean): Promise<ClientOutcome | undefined> {
    const server = this.#cluster.pick(this.#random);
    if (!server) return undefined;
    const signal = AbortSignal.timeout(PATIENCE);
    return send({ url: server.url, agent: this.room.agent, session, text, stream, key, signal });
  }
}
