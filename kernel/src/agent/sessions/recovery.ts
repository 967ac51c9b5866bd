import type { Logger } from '../../host/log.js';
import type { AssistantMessage } from '../message.js';
import type { InterruptedTurn, SessionStore } from '../points/session-store.js';

/** What an agent does about a turn that a crash cut: nothing but to say so in the log, or keep what the caller had said. */
export type RestartPolicy = 'rollback' | 'keep-input';

const NOTE: AssistantMessage = { role: 'assistant', content: 'The previous answer was interrupted.' };

/** Looks after the turns that a dead process left, before any new one begins. @param policyOf what the agent of that name wants; an agent may be gone by now. */
export async function recoverTurns(store: SessionStore, policyOf: (agent: string) => RestartPolicy, log: Logger): Promise<void> {
  for (const turn of await store.recover()) {
    const policy = policyOf(turn.id.agent);
    log.warn(
      { project: turn.id.project, agent: turn.id.agent, turn_id: turn.turnId, policy },
      'turn_interrupted: the server died in the middle of a turn',
    );
    if (policy === 'keep-input') await keepInput(store, turn);
  }
}

async function keepInput(store: SessionStore, { id, turnId, input }: InterruptedTurn): Promise<void> {
  const expected = await store.version(id);
  await store.commit(id, { turnId, expected, messages: [...input, NOTE] });
}
