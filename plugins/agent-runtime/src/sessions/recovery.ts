import type { Logger, Message, SessionStore } from '@plugboard/kernel';
import type { AssistantMessage, InterruptedTurn } from '@plugboard/kernel/contracts';
import { openToolCalls, TurnError } from '@plugboard/kernel/contracts';
import type { RestartPolicy } from '../engine/directory/agent.js';
import { messagesAtEnd } from './history/messages-at-end.js';
import { newMessages } from './history/session-input.js';
import { anyWaits } from './pending/approval.js';
import { interruptedRecord } from './turn-record.js';

const NOTE: AssistantMessage = { role: 'assistant', content: 'The previous answer was interrupted.' };

/**
 * Handles turns that a dead process left, before new ones begin.
 * @param policyOf returns the policy of an agent, which may no longer exist.
 */
export async function recoverTurns(store: SessionStore, policyOf: (agent: string) => RestartPolicy, log: Logger): Promise<void> {
  for (const turn of await store.recover()) {
    const policy = policyOf(turn.id.agent);
    log.warn(
      { event: 'turn_interrupted', project: turn.id.project, agent: turn.id.agent, turn_id: turn.turnId, policy },
      'the server died during a turn',
    );
    if (policy !== 'keep-input' || turn.input.length === 0) continue;
    try {
      await keepInput(store, turn, log);
    } catch (error) {
      // A damaged session must not prevent the start, or the recovery of the other turns.
      log.error({ err: error, turn_id: turn.turnId }, 'could not store the input of an interrupted turn');
    }
  }
}

/**
 * Later turns may have been committed since: the input is stored after them, if it still fits
 * there.
 */
async function keepInput(store: SessionStore, { id, turnId, input }: InterruptedTurn, log: Logger): Promise<void> {
  const version = await store.version(id);
  const messages = await messagesAtEnd((page) => store.turns(id, page));
  // A turn that went on with calls that had waited is not closed: the next one goes on with them.
  const waits = await anyWaits(store, id.project, openToolCalls(messages));
  const added = waits ? undefined : appendable(messages, input);
  if (added) await store.commit(id, { turnId, expected: version, messages: [...added, NOTE], record: interruptedRecord() });
  else
    log.warn(
      { turn_id: turnId },
      'the input of an interrupted turn does not fit after the stored messages of its session and was dropped',
    );
}

/**
 * Returns the messages of the input that may follow the stored ones, or undefined if no provider
 * would accept the result.
 */
function appendable(messages: readonly Message[], input: readonly Message[]): readonly Message[] | undefined {
  try {
    return newMessages(messages, input).added;
  } catch (error) {
    if (error instanceof TurnError) return undefined;
    throw error;
  }
}
