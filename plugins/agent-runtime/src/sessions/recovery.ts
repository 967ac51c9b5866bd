import type { AssistantMessage, InterruptedTurn, Logger, Message, SessionStore } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel';
import type { RestartPolicy } from '../directory/agent.js';
import { newMessages } from '../history/session-input.js';

const NOTE: AssistantMessage = { role: 'assistant', content: 'The previous answer was interrupted.' };

/** Looks after the turns that a dead process left, before any new one begins. @param policyOf what the agent of that name wants; an agent may be gone by now. */
export async function recoverTurns(store: SessionStore, policyOf: (agent: string) => RestartPolicy, log: Logger): Promise<void> {
  for (const turn of await store.recover()) {
    const policy = policyOf(turn.id.agent);
    log.warn(
      { project: turn.id.project, agent: turn.id.agent, turn_id: turn.turnId, policy },
      'turn_interrupted: the server died in the middle of a turn',
    );
    if (policy === 'keep-input') await keepInput(store, turn, log);
  }
}

/** A turn that was left behind began before others that are kept by now: its input is kept as one that comes after them, or not at all. */
async function keepInput(store: SessionStore, { id, turnId, input }: InterruptedTurn, log: Logger): Promise<void> {
  const { version, messages } = await store.load(id);
  const added = appendable(messages, input);
  if (added) await store.commit(id, { turnId, expected: version, messages: [...added, NOTE] });
  else
    log.warn(
      { turn_id: turnId },
      'what was asked in the turn does not fit behind what its session holds by now, and is not kept',
    );
}

/** What of the input may stand behind the messages, so that every provider takes the whole. */
function appendable(messages: readonly Message[], input: readonly Message[]): readonly Message[] | undefined {
  try {
    return newMessages(messages, input).added;
  } catch (error) {
    if (error instanceof TurnError) return undefined;
    throw error;
  }
}
