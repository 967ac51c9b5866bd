import type { Message } from '@plugboard/kernel';
import type { HistoryOptions } from '../../engine/directory/agent.js';
import { MIN_SUMMARY_BUDGET } from '../../engine/directory/check-config.js';
import { type HistoryBudget, newestTurns, startOfTurn } from '../../engine/messages/newest-turns.js';
import { type StoredMessages, tokensOfSummary, usableSummary } from './history-view.js';

/**
 * If the conversation fills more than `FULL` of its budget, its oldest turns are summarized until
 * it fills `HALF`.
 */
const FULL = 0.8;
const HALF = 0.5;
/** A summary may use a quarter of the budget, but at most this many tokens. */
const MAX_TOKENS = 4096;
/** The smallest useful summary, in tokens. */
const MIN_TOKENS = MIN_SUMMARY_BUDGET / 4;

export interface DueSummary {
  /** The number of oldest messages to summarize: whole turns. */
  readonly messages: number;
  /** The previous summary, which the new one replaces. */
  readonly earlier: StoredMessages['summary'];
  readonly tokens: number;
}

/** The summary of a whole conversation. */
export function summaryOfAll(messages: readonly Message[]): DueSummary {
  return { messages: messages.length, earlier: undefined, tokens: MAX_TOKENS };
}

/**
 * Decides whether a summary is due before a turn. The newest turn is kept verbatim if it fits: the
 * new messages most likely refer to it.
 */
export function dueSummary(
  stored: StoredMessages,
  added: readonly Message[],
  policy: HistoryOptions['policy'],
  budget: HistoryBudget,
): DueSummary | undefined {
  const tokens = Math.min(MAX_TOKENS, Math.floor(budget.tokens / 4));
  if (policy !== 'summarize' || !(tokens >= MIN_TOKENS)) return undefined;

  const { messages } = stored;
  const earlier = usableSummary(stored, added);
  const from = earlier?.messages ?? 0;
  /** The index where the turns begin that fit into a share of the budget, beside a summary. */
  const beginning = (share: number, from: number, summary: number) =>
    newestTurns(messages, from, added, {
      tokens: budget.tokens * share - summary,
      messages: Math.floor(budget.messages * share),
    });
  const newest = Math.max(from, startOfTurn(messages, messages.length - 1));
  const share = newest > from ? FULL : 1;
  if (beginning(share, from, earlier ? tokensOfSummary(earlier.text) : 0) === from) return undefined;

  const start = Math.min(beginning(HALF, from, tokens), beginning(1, newest, tokens));
  return start > from ? { messages: start, earlier, tokens } : undefined;
}
