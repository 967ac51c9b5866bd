import type { PluginContext } from '@plugboard/kernel';
import { type FailureCode, TurnError, type TurnRequest } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { startSpan } from '../diagnostics/channels.js';
import { reasonOf } from '../diagnostics/log-fields.js';
import { type Agent, agentForRequest } from '../directory/agent.js';
import { TurnLimiter } from '../limits/turn-limiter.js';
import { TurnMemory } from '../limits/turn-memory.js';
import type { TurnEnd } from '../log/batch.js';
import { CurrentAgents } from '../revision/current-agents.js';
import { ToolRunner } from '../tools/tool-runner.js';
import { NO_TOOLS, toolboxAt } from '../tools/toolbox.js';
import { type Answer, answer } from './answer.js';
import type { OpenConversation, TurnContext, TurnConversation } from './conversation.js';
import { ParentCall } from './parent-call.js';
import { TurnRecorder } from './turn-recorder.js';
import type { TurnTask } from './turn-task.js';

/**
 * Failures that are logged as warnings. The others are caused by the caller, or were logged where
 * they occurred: a failure of a model with its connection (`ModelCalls`).
 */
const WARNED: ReadonlySet<FailureCode> = new Set(['timed_out', 'store_failed', 'lease_lost']);

/** Runs turns with the agents that are in force when they start. */
export class TurnRunner {
  readonly #context: PluginContext;
  readonly #agents: CurrentAgents;
  readonly #limiter: TurnLimiter;
  readonly #memory: TurnMemory;
  readonly #tools: ToolRunner;

  constructor(
    @inject(CONTEXT) context: PluginContext,
    @inject(CurrentAgents) agents: CurrentAgents,
    @inject(TurnLimiter) limiter: TurnLimiter,
    @inject(TurnMemory) memory: TurnMemory,
    @inject(ToolRunner) tools: ToolRunner,
  ) {
    this.#context = context;
    this.#agents = agents;
    this.#limiter = limiter;
    this.#memory = memory;
    this.#tools = tools;
  }

  /**
   * Runs a turn: its phases in their order. Never rejects: every failure ends the turn.
   *
   * @param open opens the conversation, once the turn is admitted. No other turn uses it until this
   *   one has ended or is overdue.
   */
  async run(task: TurnTask, open: OpenConversation): Promise<void> {
    const span = startSpan('turn', () => ({ request: task.request, turnId: task.turnId }));
    task.defer(() => {
      if (task.state === 'overdue') this.#logOverdue(task.signal.reason, task.request);
      if (span.isWatched && task.terminal) span.set({ ...outcomeOf(task.terminal), record: task.record });
      span.end();
    });
    try {
      const context = await this.#admit(task, span.isWatched);
      const conversation = open(context);
      const loaded = await conversation.load();
      try {
        const earlierTools = this.#tools.settled(loaded);
        if (earlierTools) await earlierTools;
        const begun = await conversation.begin(loaded);
        const answered = await answer(context, begun);
        if (answered.end.type === 'finished') {
          if (conversation.isStored || task.idempotent) await commit(context, conversation, answered);
          else task.finish(answered.last);
        } else {
          await conversation.abandon();
          await task.failWith(answered.end);
        }
      } catch (error) {
        await conversation.abandon();
        throw error;
      }
    } catch (error) {
      // After an abort, errors are consequences of it.
      const cause = task.signal.aborted ? task.signal.reason : error;
      if (!task.hasEnded) this.#logFailure(cause, task.request);
      await task.fail(cause);
    } finally {
      task.settled();
    }
  }

  /**
   * Admits the turn: within the limits of its credential, of its project and of the server; the
   * child of another within those of its entry. What it takes is given back when the turn has
   * ended.
   *
   * @param isWatched whether a plugin wants the record of each turn.
   */
  async #admit(task: TurnTask, isWatched: boolean): Promise<TurnContext> {
    const { host, clock, ids, pin } = this.#context;
    const parent = ParentCall.of(task.request);
    const { revision } = parent?.options ?? this.#agents;
    const { signal } = task;
    const { principal, id, session } = task.request;
    if (!parent && host.phase === 'stopping') throw new TurnError('draining', 'The server is stopping.', { retryAfter: 1 });
    // The entries that the turn uses are not stopped before it has ended.
    task.defer(pin());
    // A reload may have replaced the target since it was resolved, for example while the turn was
    // in the queue.
    const target = revision.targetOf(task.request);
    const request = target === task.request.target ? task.request : { ...task.request, target };
    const agent = agentForRequest(request);
    const queued = parent ? parent.acquire(signal) : this.#limiter.acquire(principal, signal);
    if (queued) await queued;
    task.defer(() => (parent ? parent.release() : this.#limiter.release(principal)));
    const timer = clock.after(agent.timeout, () => task.requestEnd(outOfTime(agent)));
    task.defer(() => timer.cancel());
    const isFull = session !== undefined && agent.toolVisibility === 'full';
    // Nobody asks for the record of any other turn.
    if (session || id !== undefined || isWatched) task.recorder = new TurnRecorder(task.arrivedAt, clock, isFull, id);
    const all = agent.tools.length === 0 ? NO_TOOLS : await revision.toolboxes.of(agent.tools, signal);
    const toolbox = parent ? toolboxAt(parent.level, all) : all;
    return { task, agent, parent, request, signal, revision, toolbox, ids, memory: this.#memory, tools: this.#tools };
  }

  /** A turn ignored its signal: what it uses may still be busy with it. */
  #logOverdue(reason: Error, { requestId, target }: TurnRequest): void {
    const fields = { event: 'turn_overdue', request_id: requestId, agent: target.name, reason: reasonOf(reason) };
    this.#context.log.warn(fields, 'a turn still ran five seconds after it was ended');
  }

  /**
   * Logs why a turn failed. Only a defect is logged with its stack.
   * @param error why the turn failed, as its caller sees it.
   */
  #logFailure(error: unknown, { requestId, target }: TurnRequest): void {
    const { log } = this.#context;
    const fields = { request_id: requestId, agent: target.name };
    if (!(error instanceof TurnError)) log.error({ ...fields, err: error }, 'a turn crashed');
    else log[WARNED.has(error.code) ? 'warn' : 'debug']({ ...fields, reason: reasonOf(error) }, 'a turn failed');
  }
}

/** Stores the answer, and ends the turn. */
async function commit({ task }: TurnContext, conversation: TurnConversation, { last, end, transcript }: Answer): Promise<void> {
  transcript.add(last);
  const full = last.length > 1 ? task.write(last.slice(0, -1)) : undefined;
  if (full) await full;
  task.beginStoring();
  task.idempotent?.add([end]);
  await conversation.commit(transcript.messages());
  task.finish([end]);
}

function outcomeOf(end: TurnEnd): object {
  return end.type === 'finished' ? { status: end.reason, usage: end.usage } : { status: end.failure.code };
}

function outOfTime(agent: Agent): TurnError {
  return new TurnError('timed_out', `The agent did not finish within ${agent.timeout / 1000} s.`);
}
