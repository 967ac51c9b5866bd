import type { Logger, Message, PluginContext } from '@plugboard/kernel';
import type { AssistantMessage, InterruptedTurn } from '@plugboard/kernel/contracts';
import { openToolCalls, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { CurrentAgents } from '../engine/revision/current-agents.js';
import { messagesAtEnd } from './history/messages-at-end.js';
import { newMessages } from './history/session-input.js';
import { keepCalls } from './keep-calls.js';
import { anyWaits } from './pending/approval.js';
import { type BegunCall, begunCalls } from './pending/turn-journal.js';
import { SessionStorage } from './store/session-storage.js';
import { interruptedRecord } from './turn-record.js';

const NOTE: AssistantMessage = { role: 'assistant', content: 'The previous answer was interrupted.' };

/** What becomes of turns whose server died, as their agents' `onRestart` says. */
export class InterruptedTurns {
  readonly #log: Logger;
  readonly #entry: string;
  readonly #storage: SessionStorage;
  readonly #agents: CurrentAgents;

  constructor(
    @inject(CONTEXT) { entry, log }: PluginContext,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(CurrentAgents) agents: CurrentAgents,
  ) {
    this.#log = log;
    this.#entry = entry;
    this.#storage = storage;
    this.#agents = agents;
  }

  /**
   * Logs a turn. Returns whether something of it is to be kept. The agent may no longer exist.
   * @param calls of it that had begun.
   */
  note({ id, turnId, input }: InterruptedTurn, calls: readonly BegunCall[]): boolean {
    const policy = this.#agents.revision.directory.named(id.agent)?.onRestart ?? 'rollback';
    this.#log.warn(
      { event: 'turn_interrupted', project: id.project, agent: id.agent, turn_id: turnId, policy },
      'the server died during a turn',
    );
    return calls.length > 0 || (policy === 'keep-input' && input.length > 0);
  }

  /** Handles a turn whose session a later turn has now. Never rejects. */
  async recover(turn: InterruptedTurn): Promise<void> {
    const { store } = this.#storage;
    try {
      const calls = (await begunCalls(store, this.#entry, turn.turnId)).get(turn.turnId) ?? [];
      if (this.note(turn, calls)) await this.keep(turn, calls);
      else await this.drop(turn);
    } catch (error) {
      this.#log.error({ err: error, turn_id: turn.turnId }, 'could not read the calls of an interrupted turn');
    }
  }

  /**
   * Keeps the calls of a turn that had begun, or else its input, while no turn of its session runs.
   * The turn ends with the commit: if this server dies before it, the next one handles the turn.
   * Never rejects: a damaged session must not prevent the start, or the recovery of other turns.
   */
  async keep(turn: InterruptedTurn, calls: readonly BegunCall[]): Promise<void> {
    try {
      if (!(await (calls.length > 0 ? this.#keepCalls(turn, calls) : this.#keepInput(turn)))) await this.drop(turn);
    } catch (error) {
      const what = calls.length > 0 ? 'calls' : 'input';
      this.#log.error({ err: error, turn_id: turn.turnId }, `could not store the ${what} of an interrupted turn`);
    }
  }

  /** Ends a turn of which nothing is kept. If the store fails, the next server does. */
  async drop({ id, turnId }: InterruptedTurn): Promise<void> {
    await this.#storage.store.abandon(id, turnId).catch(() => {});
  }

  /** @returns whether the turn has ended. */
  async #keepCalls(turn: InterruptedTurn, calls: readonly BegunCall[]): Promise<boolean> {
    const fields = { turn_id: turn.turnId, calls: calls.map(({ call: { tool } }) => `${tool.entry}/${tool.name}`) };
    const isKept = await keepCalls(this.#storage.store, this.#entry, turn, calls);
    if (isKept) this.#log.warn(fields, 'tool calls had begun: the next turn of the session settles them');
    else this.#log.error(fields, 'tool calls of an interrupted turn could not be kept: whether they took effect is unknown');
    return isKept;
  }

  /**
   * Later turns may have been committed since: the input is stored after them, if it still fits
   * there.
   * @returns whether the turn has ended.
   */
  async #keepInput({ id, turnId, input }: InterruptedTurn): Promise<boolean> {
    const { store } = this.#storage;
    const version = await store.version(id);
    const messages = await messagesAtEnd((page) => store.turns(id, page));
    // A turn that went on with calls that had waited is not closed: the next one goes on with them.
    const waits = await anyWaits(store, id.project, openToolCalls(messages));
    const added = waits ? undefined : appendable(messages, input);
    if (added) await store.commit(id, { turnId, expected: version, messages: [...added, NOTE], record: interruptedRecord() });
    else
      this.#log.warn(
        { turn_id: turnId },
        'the input of an interrupted turn does not fit after the stored messages of its session and was dropped',
      );
    return added !== undefined;
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
