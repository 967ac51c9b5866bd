import { type AgentEvent, type Message, type ModelConnector, ModelError } from '@plugboard/kernel';
import {
  type Extra,
  type ModelToolCall,
  type Transcript,
  TurnError,
  type TurnFinished,
  type TurnToolCall,
} from '@plugboard/kernel/contracts';
import { startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import { AnswerMemory } from '../limits/answer-memory.js';
import type { Batch } from '../log/batch.js';
import type { WriteBatch } from '../log/pulled.js';
import { prefixOf } from '../messages/prefix.js';
import { resultsInOrder } from '../messages/results-in-order.js';
import { modelFailed } from '../model/model-calls.js';
import { mayTrim, modelRequest, withPrompt } from '../model/model-request.js';
import { StepReader } from '../model/step-reader.js';
import { MAX_REPEATS, type RepeatedCall, repeatedCall } from '../tools/repeat-guard.js';
import { type AskingCall, toolError } from '../tools/run-tool.js';
import type { ServerCall } from '../tools/tool-runner.js';
import type { Toolbox } from '../tools/toolbox.js';
import { type TurnTools, toolRefusal, turnTools } from '../tools/turn-tools.js';
import type { BegunTurn, TurnContext } from './conversation.js';
import { ParentCall } from './parent-call.js';
import { isEmpty, NOTHING_SPENT, type Opening, type PendingCalls, type Spent } from './pending-calls.js';
import { type ReachedLimit, TurnUse } from './turn-use.js';

const REPEATED = toolError(
  'Repeated call: this call was just made with the same arguments. Use its result or try something else.',
);

/**
 * The agent loop: calls the model, runs the tools that it calls and returns their results to it,
 * until it answers without a call, a limit is reached, it calls a client tool, or a call waits.
 * Calls that an earlier turn left pending come first.
 *
 * @param transcript what `write` has received, but for the batch with the terminal event.
 * @param write receives the events of the turn.
 * @throws TurnError with a message for the caller, or another error, which is a defect.
 */
export function runLoop(context: TurnContext, begun: BegunTurn, transcript: Transcript, write: WriteBatch): Promise<void> {
  return new AgentLoop(context, begun, transcript, write).run();
}

/** What the model answered to one call. */
interface Answered {
  readonly read: StepReader;
  /**
   * The last batch. Held back, to be written in one batch with the tool calls or the terminal
   * event.
   */
  readonly last: Batch;
  /** The digest of the request, if the connection attached data to its answer. */
  readonly prefix: string;
}

class AgentLoop {
  readonly #context: TurnContext;
  readonly #begun: BegunTurn;
  readonly #transcript: Transcript;
  readonly #write: WriteBatch;
  readonly #memory: AnswerMemory;
  readonly #tools: TurnTools;
  readonly #limits: Agent['limits'];
  /** What the turns before have used of these limits, if this one goes on. */
  readonly #spent: Spent;
  readonly #use: TurnUse;
  #toolCalls: number;
  #lastCall: RepeatedCall | undefined;
  #hasText = false;

  constructor(context: TurnContext, begun: BegunTurn, transcript: Transcript, write: WriteBatch) {
    const { agent, task, toolbox, memory, revision, parent } = context;
    this.#context = context;
    this.#begun = begun;
    this.#transcript = transcript;
    this.#write = write;
    this.#memory = new AnswerMemory(task.account, memory.answerSize);
    this.#tools = turnTools(toolbox, agent, begun.turn, revision.toolLists);
    this.#spent = begun.pending?.spent ?? NOTHING_SPENT;
    const { toolCalls, maxToolCalls, repeated } = this.#spent;
    const limit = Math.min(agent.limits.toolCalls, maxToolCalls ?? agent.limits.toolCalls);
    this.#limits = limit === agent.limits.toolCalls ? agent.limits : { ...agent.limits, toolCalls: limit };
    this.#use = new TurnUse(this.#limits, this.#spent, parent?.options.use);
    this.#toolCalls = toolCalls;
    this.#lastCall = repeated;
  }

  async run(): Promise<void> {
    const { agent } = this.#context;
    const { turn, pending } = this.#begun;
    const mayAsk = pending?.mayWait(this.#tools.toolbox.tools.values());
    const full = this.#write([{ type: 'started', turnId: turn.id, agent: agent.name, ...(mayAsk && { mayAsk }) }]);
    if (full) await full;
    const opening = pending?.opening;
    if (pending && opening && !isEmpty(opening) && (await this.#open(pending, opening))) return;
    const lead = this.#transcript.messages().length;
    const prompted = withPrompt(turn, agent);
    const whole = pending?.withResults(prompted, this.#transcript.messages()) ?? prompted;
    // What a caller sends as a whole reaches the model as it was sent (C-057).
    const conversation = turn.session === undefined ? whole : resultsInOrder(whole);
    for (let step = 1; ; step++) {
      const reached = this.#use.beginStep();
      if (reached) {
        await this.#write(this.#cut(reached));
        return;
      }
      const messages = step === 1 ? conversation : [...conversation, ...this.#transcript.messages().slice(lead)];
      const answered = await this.#callModel(step, messages);
      if (!answered) return;
      const { calls, reason, named } = answered.read;
      const end =
        calls.length > 0
          ? await this.#runCalls(answered)
          : [...answered.last, { ...this.#finished(reason === 'tool_calls' ? 'stop' : reason), ...named }];
      if (!end) continue;
      const waiting = this.#write(end);
      if (waiting) await waiting;
      return;
    }
  }

  /** Runs calls of earlier turns. Returns whether the turn ends with them. */
  async #open(pending: PendingCalls, { events, isOver, calls }: Opening): Promise<boolean> {
    if (isOver) await this.#write([...events, this.#finished('stop')]);
    else if (events.length > 0) await this.#write(events);
    if (isOver) return true;
    if (calls.length > 0) {
      const starting = this.#context.task.beginTools();
      if (starting) await starting;
      await this.#write(calls.map(({ call }) => call));
      await this.#runTools(calls);
    }
    const asking = pending.closing(calls.map(({ call }) => call.id));
    if (asking) await this.#write([asking, this.#finished('stop')]);
    return asking !== undefined;
  }

  /**
   * Writes what the model answers, up to the last batch. Returns undefined if the turn ends
   * instead, because its budget is spent.
   */
  async #callModel(step: number, messages: readonly Message[]): Promise<Answered | undefined> {
    const { agent, ids, revision } = this.#context;
    const { turn, conversation } = this.#begun;
    const { account } = this.#memory;
    const { models } = revision;
    turn.signal.throwIfAborted();
    account.goOn(); // it has waited: for its session, or for tools
    const asker = { request_id: turn.requestId, agent: agent.name };
    const headers: Record<string, string> = {};
    const span = startSpan('step', () => ({ turn, step, connections: agent.connections, headers }));
    const read = new StepReader(ids, this.#tools.streamed, (batch) => this.#memory.say(batch));
    let last: Batch;
    let prefix = '';
    // A turn that goes on does not begin again: it forces no tool call.
    const number = this.#spent.steps + step;
    try {
      const made = { agent, turn, tools: this.#tools, conversation, number, messages, account, headers };
      const request = (connector: ModelConnector, name: string) => modelRequest(connector, name, made);
      const caller = models.caller(turn, step);
      const answer = await models.ask(agent.connections, request, turn.signal, asker, caller, mayTrim(turn, agent));
      const { connection, asked, first, rest } = answer;
      span.set({ connection });
      read.connection = connection;
      try {
        last = [{ type: 'step', step, connection }, ...read.take(first)];
        while (!read.hasEnded) {
          const full = last.length > 0 ? this.#write(last) : undefined;
          if (full) await full;
          last = read.takeNext(await rest.next());
        }
      } finally {
        await rest.return?.();
      }
      if (read.hasExtra) prefix = prefixOf(asked.messages, asked.tools);
      if (read.extra !== undefined) {
        last = [...last, { type: 'extra', extra: { connection, prefix, data: read.extra } }];
      }
      span.set({ usage: read.usage, reason: read.reason });
      span.end();
    } catch (error) {
      span.fail(error);
      if (number > 1 && isBudgetSpent(error)) {
        this.#count(read);
        await this.#write(this.#cut({ limit: 'budget', text: 'The agent reached its budget before it finished.' }));
        return undefined;
      }
      if (!(error instanceof ModelError)) {
        const refusal = toolRefusal(error, this.#tools, turn);
        if (refusal instanceof TurnError && refusal.code === 'crashed') models.log.error({ ...asker }, refusal.message);
        throw refusal;
      }
      if (!turn.signal.aborted) models.onFailure(read.connection, error, asker);
      throw modelFailed(error);
    }
    this.#count(read);
    return { read, last, prefix };
  }

  #count({ usage, hasText }: StepReader): void {
    this.#use.add(usage);
    this.#hasText ||= hasText;
  }

  /**
   * Runs the calls of a step, if the limits of the agent allow another one. Returns the last batch
   * of the turn, if the turn ends with them.
   */
  async #runCalls({ read, last, prefix }: Answered): Promise<Batch | undefined> {
    const { agent, task } = this.#context;
    const { turn, pending } = this.#begun;
    const { calls } = read;
    const isClientCall = (call: ModelToolCall) =>
      agent.kind === 'model' || turn.clientTools.some(({ name }) => name === call.name);
    const endsWithClientCalls = calls.some(isClientCall);
    let index = this.#toolCalls;
    const own = calls.filter((call) => !isClientCall(call)).length;
    this.#toolCalls += own;
    // A turn that ends with calls of the client needs no further model call.
    const reached = this.#use.beginCalls(own, endsWithClientCalls);
    if (reached) return [...last, ...this.#cut(reached)];

    const { toolbox } = this.#tools;
    const repeated = new Set<ModelToolCall>();
    for (const made of calls) {
      if (isClientCall(made)) continue;
      this.#lastCall = repeatedCall(this.#lastCall, made.name, made.arguments);
      if (this.#lastCall.count >= MAX_REPEATS) repeated.add(made);
    }
    pending?.beginStep({ ...this.#use.spent, maxToolCalls: this.#limits.toolCalls, repeated: this.#lastCall });
    const running: ServerCall[] = [];
    const ids: string[] = [];
    const asked = calls.map((made): AgentEvent => {
      const origin = { connection: read.connection, prefix };
      const call = toolCall(read.takeId(made), made, origin, isClientCall(made) ? undefined : toolbox);
      if (!call.tool) return call;
      ids.push(call.id);
      const own = { call, index: index++ };
      const instead = repeated.has(made) ? REPEATED : pending?.admit(own, toolbox.tools.get(call.name));
      if (instead && 'type' in instead) return instead;
      running.push({ ...own, instead });
      return call;
    });
    const starting = running.length > 0 ? task.beginTools() : undefined;
    if (starting) {
      if (last.length > 0) await Promise.all([this.#write(last), starting]);
      else await starting;
      await this.#write(asked);
    } else await this.#write([...last, ...asked]);
    if (running.length > 0) await this.#runTools(running);

    const reason = endsWithClientCalls ? 'tool_calls' : 'stop';
    const asking = pending?.closing(ids);
    if (asking) return [asking, this.#finished(reason)];
    return endsWithClientCalls ? [{ ...this.#finished(reason), ...read.named }] : undefined;
  }

  async #runTools(calls: readonly ServerCall[]): Promise<void> {
    const { agent, revision, task, tools } = this.#context;
    const { turn, pending } = this.#begun;
    const interceptors = revision.toolInterceptors.all();
    const { toolbox } = this.#tools;
    const onAsking = (asking: AskingCall) => this.#onAsking(asking);
    const assertLease = () => task.assertLease();
    const context = { toolbox, agent, turn, interceptors, pending, journal: pending?.journal, onAsking, assertLease };
    await tools.run(calls, context, (batch) => {
      this.#memory.addResults(batch);
      return this.#write(batch);
    });
  }

  /** A call of a tool that asks an agent begins. */
  #onAsking(asking: AskingCall): ParentCall {
    const { request, task, revision, parent: above } = this.#context;
    const canWait = this.#begun.pending?.canWait === true;
    const { account, lease } = task;
    return new ParentCall({ ...asking, request, account, lease, revision, use: this.#use, canWait, above });
  }

  /** The end of a turn by a limit. Its text says so, where the turn has none. */
  #cut({ limit, text }: ReachedLimit): Batch {
    const said: Batch = this.#hasText ? [] : [{ type: 'text', text }];
    return [...said, { ...this.#finished('length'), limit }];
  }

  #finished(reason: TurnFinished['reason']): TurnFinished {
    return { type: 'finished', reason, usage: this.#use.usage };
  }
}

/** Whether a model interceptor refused a request because a budget is spent. */
function isBudgetSpent(error: unknown): boolean {
  return error instanceof TurnError && error.code === 'insufficient_quota';
}

/** @param id the one that callers see. */
function toolCall(id: string, call: ModelToolCall, origin: Omit<Extra, 'data'>, toolbox: Toolbox | undefined): TurnToolCall {
  const known = toolbox?.tools.get(call.name);
  const tool = toolbox ? { entry: known?.entry ?? '', name: known?.tool.name ?? call.name } : undefined;
  const extra = call.extra === undefined ? undefined : { ...origin, data: call.extra };
  return { type: 'tool-call', id, name: call.name, arguments: call.arguments, tool, extra };
}
