import type { Attempt } from './checker.js';
import { type ClientOutcome, type Send, send } from './client.js';
import { answerTo, type TurnKind, textOfTurn } from './known-turns.js';

/** What a player does and sees, for code that waits for it. */
export type PlayerEvent = 'chunk' | 'finish' | 'answered';

const KINDS: readonly TurnKind[] = ['plain', 'tool', 'plain', 'tools'];

/**
 * A client that sends turns to one session after the other, each when the one before has ended, and
 * writes down what it saw.
 */
export class Player {
  readonly agent: string;
  /** Answers that did not fit what was said. */
  readonly wrong: string[] = [];
  /**
   * Refusals that nothing explains: only what is repeated may be refused, where its tools had
   * begun.
   */
  readonly refused: string[] = [];
  /** How many turns that broke off were sent again, and had an end then. */
  repeated = 0;
  readonly #who: string;
  readonly #room: string;
  readonly #repeats: boolean;
  readonly #journal: Attempt[];
  readonly #random: () => number;
  #count = 0;
  #brokenOff: Attempt | undefined;

  /**
   * @param room names its sessions; two players may share one.
   * @param repeats sends what broke off again, under an Idempotency-Key.
   */
  constructor(
    { who, room = who, agent = 'assistant', repeats = false }: { who: string; room?: string; agent?: string; repeats?: boolean },
    journal: Attempt[],
    random: () => number,
  ) {
    this.agent = agent;
    this.#who = who;
    this.#room = room;
    this.#repeats = repeats;
    this.#journal = journal;
    this.#random = random;
  }

  session(age: number): string {
    return `${this.#room}-${age}`;
  }

  /** Begins a new session. What broke off in the one before is not repeated. */
  moveOn(): void {
    this.#brokenOff = undefined;
  }

  /** Sends one turn. @returns whether the server was there to its end. */
  async turn(url: string, age: number, see: (what: PlayerEvent) => void): Promise<boolean> {
    const again = this.#brokenOff;
    const attempt = again ?? this.#next(age);
    this.#brokenOff = undefined;
    const seen = await send({
      url,
      agent: this.agent,
      session: attempt.session,
      text: attempt.text,
      stream: this.#random() < 0.7,
      ...(this.#repeats && { key: attempt.text, stream: false }),
      onMore: watching(see),
    } satisfies Send);
    attempt.saw = seen.saw;
    if (seen.saw === 'nothing') {
      if (this.#repeats) this.#brokenOff = attempt;
      return false;
    }
    see('answered');
    this.#judge(attempt, seen, again !== undefined);
    return true;
  }

  #next(age: number): Attempt {
    const kind = KINDS[Math.floor(this.#random() * KINDS.length)] ?? 'plain';
    const text = textOfTurn(this.#who, ++this.#count, kind);
    const attempt: Attempt = { session: this.session(age), who: this.#who, text, saw: 'nothing' };
    this.#journal.push(attempt);
    return attempt;
  }

  #judge({ text }: Attempt, seen: ClientOutcome, isRepeated: boolean): void {
    if (isRepeated) this.repeated++;
    if (seen.saw === 'end' && !seen.text.endsWith(answerTo(text))) this.wrong.push(`${text}: ${seen.text}`);
    if (seen.saw === 'refusal' && !(isRepeated && text.includes('tool'))) this.refused.push(text);
  }
}

function watching(see: (what: PlayerEvent) => void): (received: string) => void {
  let hasFinished = false;
  return (received) => {
    see('chunk');
    if (hasFinished || !received.includes('"finish_reason":"stop"')) return;
    hasFinished = true;
    see('finish');
  };
}
