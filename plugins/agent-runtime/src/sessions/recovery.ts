import type { Logger, Message, SessionStore } from '@plugboard/kernel';
import type { AssistantMessage, InterruptedTurn } from '@plugboard/kernel/contracts';
import { openToolCalls, TurnError } from '@plugboard/kernel/contracts';
import type { RestartPolicy } from '../engine/directory/agent.js';
import { messagesAtEnd } from './history/messages-at-end.js';
import { newMessages } from './history/session-input.js';
import { keepCalls } from './keep-calls.js';
import { anyWaits } from './pending/approval.js';
import { type BegunCall, begunCalls } from './pending/turn-journal.js';
import { interruptedRecord } from './turn-record.js';

const NOTE: AssistantMessage = { role: 'assistant', content: 'The previous answer was interrupted.' };

/** What recovery needs of the runtime. */
interface Recovery {
  readonly store: SessionStore;
  /** The entry of the runtime, whose state has the calls that began. */
  readonly entry: string;
  /** Returns the policy of an agent, which may no longer exist. */
  policyOf(agent: string): RestartPolicy;
  readonly log: Logger;
}

/** Handles turns that a dead process left, before new ones begin. */
export async function recoverTurns({ store, entry, policyOf, log }: Recovery): Promise<void> {
  const begun = new Map(await begunCalls(store, entry));
  for (const turn of await store.recover()) {
    const policy = policyOf(turn.id.agent);
    const calls = begun.get(turn.turnId);
    begun.delete(turn.turnId);
    log.warn(
      { event: 'turn_interrupted', project: turn.id.project, agent: turn.id.agent, turn_id: turn.turnId, policy },
      'the server died during a turn',
    );
    try {
      if (calls) await keepBegun(store, entry, turn, calls, log);
      else if (policy === 'keep-input' && turn.input.length > 0) await keepInput(store, turn, log);
    } catch (error) {
      // A damaged session must not prevent the start, or the recovery of the other turns.
      log.error({ err: error, turn_id: turn.turnId }, 'could not store the input of an interrupted turn');
    }
  }
  // Other servers of a shared store run turns now.
  if ('shared' in store && store.shared !== undefined) return;
  for (const [turnId, calls] of begun) {
    const [{ session: id } = {}] = calls;
    if (!id) continue;
    try {
      await keepBegun(store, entry, { id, turnId, input: [] }, calls, log);
    } catch (error) {
      log.error({ err: error, turn_id: turnId }, 'could not store the calls of an interrupted turn');
    }
  }
}

async function keepBegun(
  store: SessionStore,
  entry: string,
  turn: InterruptedTurn,
  calls: readonly BegunCall[],
  log: Logger,
): Promise<void> {
  const fields = { turn_id: turn.turnId, calls: calls.map(({ call: { tool } }) => `${tool.entry}/${tool.name}`) };
  if (await keepCalls(store, entry, turn, calls))
    log.warn(fields, 'tool calls had begun: the next turn of the session settles them');
  else log.error(fields, 'tool calls of an interrupted turn could not be kept: whether they took effect is unknown');
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
