import type { Message } from '@plugboard/kernel';
import { beginningOfTurn, type HistoryBudget, type HistoryOptions, newestTurns } from '../history-view.js';
import { type Conversation, tokensOfSummary, usableSummary } from '../summary-view.js';

/** A view that fills more of its room than this has its oldest turns summarized, so that it fills half of it. */
const FULL = 0.8;
const HALF = 0.5;
/** A summary may take a quarter of the budget, in tokens, but no more than this: what is longer is no summary. */
const LONGEST = 4096;
/** A summary of fewer tokens would say nothing. */
const SHORTEST = 100;
/** With less room than this, in tokens, there is none for a summary. */
export const MIN_SUMMARY_BUDGET = 4 * SHORTEST;

/** A summary that is to be made. */
export interface DueSummary {
  /** So many of the oldest messages are to be in it: whole turns. */
  readonly messages: number;
  /** The one so far, which is to go into it. */
  readonly earlier: Conversation['summary'];
  /** Tokens that it may take in front of the conversation. */
  readonly tokens: number;
}

/** The summary that is due before a turn, if one is. The newest turn is left as it is wherever it fits: it is what the new messages most likely speak of. */
export function dueSummary(
  stored: Conversation,
  added: readonly Message[],
  policy: HistoryOptions['policy'],
  budget: HistoryBudget,
): DueSummary | undefined {
  const tokens = Math.min(LONGEST, Math.floor(budget.tokens / 4));
  if (policy !== 'summarize' || !(tokens >= SHORTEST)) return undefined;

  const { messages } = stored;
  const earlier = usableSummary(stored, added);
  const from = earlier?.messages ?? 0;
  /** Where the turns begin that fit into a share of the budget, beside a summary. */
  const beginning = (share: number, from: number, summary: number) =>
    newestTurns(messages, from, added, {
      tokens: budget.tokens * share - summary,
      messages: Math.floor(budget.messages * share),
    });
  const newest = Math.max(from, beginningOfTurn(messages, messages.length - 1));
  const share = newest > from ? FULL : 1;
  if (beginning(share, from, earlier ? tokensOfSummary(earlier.text) : 0) === from) return undefined;

  const start = Math.min(beginning(HALF, from, tokens), beginning(1, newest, tokens));
  return start > from ? { messages: start, earlier, tokens } : undefined;
}
