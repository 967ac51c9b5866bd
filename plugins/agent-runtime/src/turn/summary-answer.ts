import { ModelError, type ModelEvent } from '@plugboard/kernel';
import type { DueSummary } from '../history/summary/due-summary.js';
import { tokensOfSummary } from '../history/summary-view.js';
import type { Answer } from './model-calls.js';
import type { StepReader } from './step-reader.js';

/**
 * Reads a summary that a model makes. Nobody is shown it, and of what is too long the end is not
 * waited for.
 *
 * @param read gathers what the call used, whatever comes of it.
 * @throws where the answer is no summary.
 */
export async function summaryIn({ first, rest }: Answer, due: DueSummary, read: StepReader): Promise<string> {
  let text = '';
  const take = (batch: readonly ModelEvent[]) => {
    for (const event of read.take(batch)) if (event.type === 'text') text += event.text;
    if (tokensOfSummary(text) > due.tokens) throw new Error('the summary is too long');
  };
  try {
    take(first);
    while (!read.hasEnded) {
      const next = await rest.next();
      if (next.done) throw new ModelError('its answer was cut off.', { retryable: true });
      take(next.value);
    }
  } finally {
    await rest.return?.();
  }
  if (read.reason !== 'stop') throw new Error(`the summary ended with "${read.reason}"`);
  if (text.trim() === '') throw new Error('the summary is empty');
  return text.trim();
}
