import type { Summary, TurnRequest, Usage } from '@plugboard/kernel/contracts';
import { startSpan } from '../../engine/diagnostics/channels.js';
import type { Agent } from '../../engine/directory/agent.js';
import type { ModelCalls } from '../../engine/model/model-calls.js';
import { requestOrigin } from '../../engine/model/request-origin.js';
import { StepReader } from '../../engine/model/step-reader.js';
import type { LoadedSession, SessionHistory } from '../conversation/session-history.js';
import type { StoreCall } from '../store/store-call.js';
import type { DueSummary } from './due-summary.js';
import { readSummary } from './summary-answer.js';
import { summaryRequest } from './summary-request.js';

/** The result of a request for a summary. */
export interface SummaryResult {
  /** The conversation with its new summary, or unchanged if it failed. */
  readonly stored: LoadedSession;
  /** Usage of the model call, successful or not. */
  readonly usage: Usage;
}

/**
 * Asks the agent's model for the due summary and stores it with the session. A failure is logged
 * and does not fail the turn.
 *
 * @throws the signal's reason if it aborts meanwhile.
 */
export async function summarize(
  history: SessionHistory,
  stored: LoadedSession,
  due: DueSummary,
  agent: Agent,
  asked: Pick<TurnRequest, 'requestId' | 'user'>,
  models: ModelCalls,
  storeCall: StoreCall,
  signal: AbortSignal,
): Promise<SummaryResult> {
  const facts = { project: history.id.project, agent: agent.name };
  const headers: Record<string, string> = {};
  const span = startSpan('summary', () => ({ session: history.id, connections: agent.connections, headers }));
  const read = new StepReader();
  let summary: Summary;
  try {
    const messages = summaryRequest(stored.messages, due, agent.contextWindow);
    // Without the agent's parameters: they shape answers (format, length, stop sequences).
    const request = { messages, tools: [], params: {}, incremental: true, ...requestOrigin(asked, history.id), headers };
    const answer = await models.ask(agent.connections, () => request, signal, facts);
    span.set({ connection: answer.connection });
    summary = { messages: due.messages, text: await readSummary(answer, due, read) };
    span.set({ usage: read.usage });
    span.end();
  } catch (err) {
    span.set({ usage: read.usage });
    span.fail(err);
    signal.throwIfAborted();
    history.noteFailedSummary(stored);
    models.log.warn({ err, ...facts }, 'could not summarize a session; messages that do not fit are not sent to the model');
    return { stored, usage: read.usage };
  }
  try {
    await storeCall(() => history.summarize(stored, summary), 'putSummary', history.id);
  } catch (err) {
    models.log.warn({ err, ...facts }, 'could not store the summary of a session; it is lost when the session leaves memory');
  }
  return { stored: { ...stored, summary }, usage: read.usage };
}
