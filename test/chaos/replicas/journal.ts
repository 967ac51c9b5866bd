import type { Message } from '@plugboard/kernel';
import type { Attempt, StoredHistory } from '../checker.js';
import { answerTo, textOfTurn } from '../known-turns.js';

/** An attempt with its place in real time, in ticks of the journal. */
export interface TimedAttempt extends Attempt {
  readonly sentAt: number;
  /** When its end was seen. Without it, the turn may still be stored at any later time. */
  endedAt?: number;
  /** The Idempotency-Key of its requests. */
  readonly key?: string | undefined;
}

/** What all clients saw, in the order in which it happened. */
export class Journal {
  readonly attempts: TimedAttempt[] = [];
  /** Of each session, the texts whose ends were seen. */
  readonly #acknowledged = new Map<string, string[]>();
  readonly #sessions = new Map<string, string>();
  #tick = 0;
  acknowledged = 0;

  send(session: string, who: string, kind: string, isKeyed: boolean): TimedAttempt {
    const text = textOfTurn(who, this.attempts.length + 1, kind);
    const key = isKeyed ? text.replaceAll(' ', '-') : undefined;
    const attempt: TimedAttempt = { session, who, text, key, saw: 'nothing', sentAt: ++this.#tick };
    this.attempts.push(attempt);
    this.#sessions.set(text, session);
    return attempt;
  }

  end(attempt: TimedAttempt): void {
    attempt.saw = 'end';
    attempt.endedAt = ++this.#tick;
    this.acknowledged++;
    this.#acknowledged.set(attempt.session, [...(this.#acknowledged.get(attempt.session) ?? []), attempt.text]);
  }

  /**
   * The acknowledged turns of the session of the last of these user messages that are not among
   * them.
   */
  missingIn(userTexts: readonly string[]): readonly string[] {
    const sent = new Set(userTexts);
    const session = this.#sessions.get(userTexts.at(-1) ?? '') ?? '';
    return (this.#acknowledged.get(session) ?? []).filter((text) => !sent.has(text));
  }
}

/**
 * Turns that are stored after one that was only sent when they had ended: on whichever servers the
 * two ran, whichever clients sent them. Each fault is a sentence.
 */
export function outOfOrder(journal: readonly TimedAttempt[], kept: ReadonlyMap<string, StoredHistory>): string[] {
  const attempts = new Map(journal.map((one) => [one.text, one]));
  const faults: string[] = [];
  for (const [session, { messages }] of kept) {
    let newest: TimedAttempt | undefined;
    for (const { role, content } of messages) {
      const attempt = role === 'user' ? attempts.get(String(content)) : undefined;
      if (!attempt) continue;
      if (newest && attempt.endedAt !== undefined && attempt.endedAt < newest.sentAt)
        faults.push(`${session}: "${attempt.text}" had ended before "${newest.text}" was sent, and is stored after it`);
      if (!newest || attempt.sentAt > newest.sentAt) newest = attempt;
    }
  }
  return faults;
}

/**
 * Of a turn that broke off when a tool that writes had begun, what the tool did is kept, without an
 * answer (TC-4). Adds the answers that are missing so, for code that looks for whole turns.
 */
export function withAnswers(kept: ReadonlyMap<string, StoredHistory>, journal: readonly TimedAttempt[]) {
  const unknown = new Set(journal.flatMap(({ saw, text }) => (saw === 'nothing' && text.endsWith(' count') ? [text] : [])));
  let begun = 0;
  const whole = new Map<string, StoredHistory>();
  for (const [session, { version, messages }] of kept) {
    let text = '';
    const added: Message[] = [];
    for (const [at, message] of messages.entries()) {
      added.push(message);
      if (message.role === 'user') text = String(message.content);
      const isLast = messages[at + 1] === undefined || messages[at + 1]?.role === 'user';
      if (message.role !== 'tool' || !isLast || !unknown.has(text)) continue;
      begun++;
      added.push({ role: 'assistant', content: answerTo(text) });
    }
    whole.set(session, { version, messages: added });
  }
  return { kept: whole, begun };
}
