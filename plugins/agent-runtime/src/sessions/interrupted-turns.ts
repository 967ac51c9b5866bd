import type { Logger, Message, PluginContext } from '@plugboard/kernel';
import type { AssistantMessage, InterruptedTurn } from '@plugboard/kernel/contracts';
import { openToolCalls, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { CurrentAgents } from '../engine/revision/current-agents.js';
import { messagesAtEnd } from './history/messages-at-end.js';
import { newMessages } from './history/session-input.js';
import { anyWaits } from './pending/approval.js';
import { SessionStorage } from './store/session-storage.js';
import { interruptedRecord } from './turn-record.js';

const NOTE: AssistantMessage = { role: 'assistant', content: 'The previous answer was interrupted.' };

/** What becomes of turns whose server died, as their agents' `onRestart` says. */
export class InterruptedTurns {
  readonly #log: Logger;
  readonly #storage: SessionStorage;
  readonly #agents: CurrentAgents;

  constructor(
    @inject(CONTEXT) { log }: PluginContext,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(CurrentAgents) agents: CurrentAgents,
  ) {
    this.#log = log;
    this.#storage = storage;
    this.#agents = agents;
  }

  /** Logs a turn. Returns whether its input is to be kept. The agent may no longer exist. */
  note({ id, turnId, input }: InterruptedTurn): boolean {
    const policy = this.#agents.revision.directory.named(id.agent)?.onRestart ?? 'rollback';
    this.#log.warn(
      { event: 'turn_interrupted', project: id.project, agent: id.agent, turn_id: turnId, policy },
      'the server died during a turn',
    );
    return policy === 'keep-input' && input.length > 0;
  }

  /**
   * Keeps the input of a turn, while no turn of its session runs. Later turns may have been
   * committed since: the input is stored after them, if it still fits there. Never rejects: a
   * damaged session must not prevent the start, or the recovery of other turns.
   *
   * @param commits the turn that ends with the commit, if one does.
   */
  async keepInput({ id, turnId, input }: InterruptedTurn, commits: string | undefined): Promise<void> {
    const { store } = this.#storage;
    try {
      const version = await store.version(id);
      const messages = await messagesAtEnd((page) => store.turns(id, page));
      // A turn that went on with calls that had waited is not closed: the next one goes on with
      // them.
      const waits = await anyWaits(store, id.project, openToolCalls(messages));
      const added = waits ? undefined : appendable(messages, input);
      if (added) {
        const stored = { expected: version, messages: [...added, NOTE], record: interruptedRecord() };
        await store.commit(id, { ...stored, turnId: commits });
      } else
        this.#log.warn(
          { turn_id: turnId },
          'the input of an interrupted turn does not fit after the stored messages of its session and was dropped',
        );
    } catch (error) {
      this.#log.error({ err: error, turn_id: turnId }, 'could not store the input of an interrupted turn');
    }
  }
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
