import type { AgentEvent } from '@plugboard/kernel';
import type { Answer } from '../../engine/model/model-calls.js';
import type { StepReader } from '../../engine/model/step-reader.js';
import type { DueSummary } from './due-summary.js';
import { tokensOfSummary } from './summary-view.js';

/**
 * Reads a summary from a model's answer. Stops reading when it gets too long.
 *
 * @param read collects the usage of the call, even if it fails.
 * @throws if the answer is not a usable summary.
 */
export async function readSummary({ first, rest }: Answer, due: DueSummary, read: StepReader): Promise<string> {
  let text = '';
  const add = (batch: readonly AgentEvent[]) => {
    for (const event of batch) if (event.type === 'text' && !event.isRefusal) text += event.text;
    if (tokensOfSummary(text) > due.tokens) throw new Error('the summary is too long');
  };
  try {
    add(read.take(first));
    while (!read.hasEnded) add(read.takeNext(await rest.next()));
  } finally {
    await rest.return?.();
  }
  if (read.reason !== 'stop') throw new Error(`the summary ended with "${read.reason}"`);
  if (text.trim() === '') throw new Error('the summary is empty');
  return text.trim();
}
