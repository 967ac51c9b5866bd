import { type AgentEvent, ModelError, type Turn } from '@plugboard/kernel';
import { type Summary, TurnError, type Usage } from '@plugboard/kernel/contracts';
import { startSpan } from '../../engine/diagnostics/channels.js';
import type { ModelAnswer } from '../../engine/model/model-calls.js';
import { StepReader } from '../../engine/model/step-reader.js';
import type { TurnContext } from '../../engine/turn/conversation.js';
import type { DueSummary } from '../history/due-summary.js';
import { tokensOfSummary } from '../history/history-view.js';
import { summaryRequest } from '../history/summary-request.js';
import type { LoadedSession, SessionHistory } from './session-history.js';

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
 * @throws the signal's reason if it aborts meanwhile; TurnError if a model interceptor refuses.
 */
export async function summarize(
  { agent, request: { requestId, user }, revision: { models }, ids, signal }: TurnContext,
  turn: Turn,
  history: SessionHistory,
  stored: LoadedSession,
  due: DueSummary,
): Promise<SummaryResult> {
  const fields = { project: history.id.project, agent: agent.name };
  const headers: Record<string, string> = {};
  const span = startSpan('summary', () => ({ session: history.id, connections: agent.connections, headers }));
  const read = new StepReader(ids);
  let summary: Summary;
  let isAsked = false;
  try {
    const messages = summaryRequest(stored.messages, due, agent.contextWindow);
    // Without the agent's parameters: they shape answers (format, length, stop sequences).
    const origin = { requestId, session: history.conversation, user };
    const request = { messages, tools: [], params: {}, incremental: true, ...origin, headers };
    isAsked = true;
    const answer = await models.ask(agent.connections, () => request, signal, fields, models.caller(turn, 0));
    span.set({ connection: answer.connection });
    summary = { messages: due.messages, text: await readSummary(answer, due, read) };
    span.set({ usage: read.usage });
    span.end();
  } catch (err) {
    span.set({ usage: read.usage });
    span.fail(err);
    signal.throwIfAborted();
    if (isAsked && isRefusal(err)) throw err;
    history.noteFailedSummary(stored);
    models.log.warn({ err, ...fields }, 'could not summarize a session; messages that do not fit are not sent to the model');
    return { stored, usage: read.usage };
  }
  try {
    await history.summarize(stored, summary);
  } catch (err) {
    models.log.warn({ err, ...fields }, 'could not store the summary of a session; it is lost when the session leaves memory');
  }
  return { stored: { ...stored, summary }, usage: read.usage };
}

/**
 * Reads a summary from a model's answer. Stops reading when it gets too long.
 *
 * @param read collects the usage of the call, even if it fails.
 * @throws if the answer is not a usable summary.
 */
async function readSummary({ first, rest }: ModelAnswer, due: DueSummary, read: StepReader): Promise<string> {
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

/** Whether an interceptor refused the request: any other `TurnError` has a failed connection. */
function isRefusal(error: unknown): boolean {
  return error instanceof TurnError && error.code !== 'model_failed' && !(error.cause instanceof ModelError);
}
