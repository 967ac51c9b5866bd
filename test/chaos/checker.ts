import type { Message } from '@plugboard/kernel';
import { historyFaults } from './history-faults.js';
import { differsFromWhole, INTERRUPTED_NOTE } from './known-turns.js';

/** One turn as its client saw it. */
export interface Attempt {
  readonly session: string;
  /** Of one client's turns in one session, each was sent when the one before had ended. */
  readonly who: string;
  /** No other attempt says the same. */
  readonly text: string;
  /** The end of the answer, a refusal, or undefined: then the outcome is unknown. */
  saw: 'end' | 'refusal' | 'nothing';
}

/** What a store holds of a session. */
export interface StoredHistory {
  readonly version: number;
  readonly messages: readonly Message[];
}

/**
 * What came of comparing them: all the lists are empty where the store kept what it promised. Each
 * fault is a sentence.
 */
export interface Verdict {
  acknowledged: number;
  /** Whole turns whose end no client has seen. */
  keptUnacknowledged: number;
  /** Turns of which only what was asked is kept, because the agent wants it so. */
  keptInput: number;
  lost: string[];
  duplicated: string[];
  half: string[];
  /** Kept in another order than they were sent in. */
  disordered: string[];
  /** Refused and kept all the same, or never sent. */
  unasked: string[];
  invalid: string[];
}

/**
 * Holds what a store has kept against what clients saw. It looks at the history and knows nothing
 * of how it came about.
 *
 * @param keepsInput the sessions of agents that keep what they were asked when the server dies.
 */
export function check(
  journal: readonly Attempt[],
  kept: ReadonlyMap<string, StoredHistory>,
  keepsInput: ReadonlySet<string> = new Set(),
): Verdict {
  const verdict: Verdict = {
    acknowledged: journal.filter(({ saw }) => saw === 'end').length,
    keptUnacknowledged: 0,
    keptInput: 0,
    lost: [],
    duplicated: [],
    half: [],
    disordered: [],
    unasked: [],
    invalid: [],
  };
  const sessions = new Set([...kept.keys(), ...journal.map(({ session }) => session)]);
  for (const session of sessions) {
    const attempts = new Map(journal.filter((one) => one.session === session).map((one) => [one.text, one]));
    checkSession(session, attempts, kept.get(session) ?? { version: 0, messages: [] }, keepsInput.has(session), verdict);
  }
  return verdict;
}

function checkSession(
  session: string,
  attempts: ReadonlyMap<string, Attempt>,
  { version, messages }: StoredHistory,
  keepsInput: boolean,
  verdict: Verdict,
): void {
  verdict.invalid.push(...historyFaults(messages).map((fault) => `${session}: ${fault}`));
  const turns = turnsOf(messages);
  if (turns.length !== version) verdict.invalid.push(`${session}: ${turns.length} turns at version ${version}`);

  const seen = new Set<string>();
  const order = [...attempts.keys()];
  const newest = new Map<string, number>();
  for (const turn of turns) {
    const text = String(turn[0]?.content);
    const attempt = attempts.get(text);
    if (!attempt || attempt.saw === 'refusal') {
      verdict.unasked.push(`${session}: "${text}" is kept, and was ${attempt ? 'refused' : 'never sent'}`);
      continue;
    }
    if (seen.has(text)) verdict.duplicated.push(`${session}: "${text}"`);
    seen.add(text);
    const place = order.indexOf(text);
    if (place < (newest.get(attempt.who) ?? -1)) verdict.disordered.push(`${session}: "${text}" comes too late`);
    newest.set(attempt.who, place);

    const differs = differsFromWhole(turn);
    const isNote = turn.length === 2 && turn[1]?.content === INTERRUPTED_NOTE;
    if (differs === undefined) verdict.keptUnacknowledged += attempt.saw === 'end' ? 0 : 1;
    else if (isNote && keepsInput && attempt.saw === 'nothing') verdict.keptInput += 1;
    else verdict.half.push(`${session}: "${text}" ${differs}`);
  }
  for (const { text, saw } of attempts.values()) {
    if (saw === 'end' && !seen.has(text)) verdict.lost.push(`${session}: "${text}"`);
  }
}

/** A turn is a user message with what follows upon it. */
function turnsOf(messages: readonly Message[]): readonly (readonly Message[])[] {
  const turns: Message[][] = [];
  for (const message of messages) {
    if (message.role === 'user' || turns.length === 0) turns.push([message]);
    else turns.at(-1)?.push(message);
  }
  return turns;
}
