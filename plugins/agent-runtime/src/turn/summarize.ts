import type { StoredSession, Summary, Usage } from '@plugboard/kernel';
import { startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import type { DueSummary } from '../history/summary/due-summary.js';
import { summaryRequest } from '../history/summary/summary-request.js';
import type { SessionHistory } from '../sessions/session-history.js';
import type { StoreCall } from '../sessions/store-call.js';
import type { ModelCalls } from './model-calls.js';
import { StepReader } from './step-reader.js';
import { summaryIn } from './summary-answer.js';

/** What came of asking for a summary. */
export interface Summarized {
  /** The conversation with its new summary; as it was where there is none. */
  readonly stored: StoredSession;
  /** What the model call used, whatever came of it. */
  readonly usage: Usage;
}

/**
 * Has the agent's own model make the summary that is due, and keeps it with the session. What goes wrong is a line in the log, and no failure of the turn.
 *
 * @throws the signal's reason when that is aborted meanwhile.
 */
export async function summarize(
  history: SessionHistory,
  stored: StoredSession,
  due: DueSummary,
  agent: Agent,
  models: ModelCalls,
  storeCall: StoreCall,
  signal: AbortSignal,
): Promise<Summarized> {
  const facts = { project: history.id.project, agent: agent.name };
  const headers: Record<string, string> = {};
  const span = startSpan('summary', () => ({ session: history.id, connections: agent.connections, headers }));
  const read = new StepReader();
  let summary: Summary;
  try {
    const messages = summaryRequest(stored.messages, due, agent.contextWindow);
    // The agent's own parameters are for its answers: their form, their length, where they stop.
    const request = { messages, tools: [], params: {}, incremental: true, headers };
    const answer = await models.ask(agent.connections, () => request, signal);
    span.set({ connection: answer.connection });
    summary = { messages: due.messages, text: await summaryIn(answer, due, read) };
    span.set({ usage: read.usage });
    span.end();
  } catch (err) {
    span.set({ usage: read.usage });
    span.fail(err);
    signal.throwIfAborted();
    history.noteFailedSummary(stored);
    models.log.warn({ err, ...facts }, 'a session could not be summarized: its model is not given what does not fit');
    return { stored, usage: read.usage };
  }
  try {
    await storeCall(() => history.summarize(stored, summary), 'putSummary', history.id);
  } catch (err) {
    models.log.warn(
      { err, ...facts },
      'the summary of a session could not be kept: it lasts as long as the session is in memory',
    );
  }
  return { stored: { ...stored, summary }, usage: read.usage };
}
