import {
  type Contribution,
  type Message,
  type ModelConnector,
  ModelError,
  type ToolInterceptor,
  type Turn,
} from '@plugboard/kernel';
import {
  addUsage,
  type Extra,
  type ModelToolCall,
  NO_USAGE,
  type Transcript,
  type TurnApproval,
  TurnError,
  type TurnFinished,
  type TurnToolCall,
  type Usage,
} from '@plugboard/kernel/contracts';
import { startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import type { AnswerMemory } from '../limits/answer-memory.js';
import type { Batch } from '../log/batch.js';
import type { WriteBatch } from '../log/pulled.js';
import { prefixOf } from '../messages/prefix.js';
import { resultsInOrder } from '../messages/results-in-order.js';
import { modelFailed } from '../model/model-calls.js';
import { mayTrim, modelRequest, withPrompt } from '../model/model-request.js';
import { StepReader } from '../model/step-reader.js';
import { StreamedCalls } from '../model/streamed-calls.js';
import { RepeatGuard } from '../tools/repeat-guard.js';
import type { ServerCall } from '../tools/tool-runner.js';
import type { Toolbox } from '../tools/toolbox.js';
import { type TurnTools, toolRefusal, turnTools } from '../tools/turn-tools.js';
import type { PendingCalls, Spent } from './pending-calls.js';
import { exceededLimit } from './step-limits.js';
import type { LoopDependencies } from './turn-context.js';

export interface LoopOptions {
  readonly agent: Agent;
  readonly turn: Turn;
  /** The opaque id of the turn's session, for model servers. */
  readonly conversation: string | undefined;
  readonly pending: PendingCalls;
  /** What `write` has received, but for the batch with the terminal event. */
  readonly transcript: Transcript;
  /** Reserves the memory of the answer. */
  readonly memory: AnswerMemory;
  readonly deps: LoopDependencies;
  /** Receives the events of the turn. */
  readonly write: WriteBatch;
  /** Called before tools of the agent start. They wait for what it returns. */
  onToolsStart(): Promise<void> | undefined;
}

/**
 * The agent loop: calls the model, runs the tools that it calls and returns their results to it,
 * until it answers without a call, a limit is reached, it calls a client tool, or a call waits for
 * approval. Calls that an earlier turn left pending come first.
 *
 * @throws TurnError with a message for the caller, or another error, which is a defect.
 */
export async function runLoop(options: LoopOptions): Promise<void> {
  const { agent, turn, deps } = options;
  const toolbox = await deps.toolboxes.of(agent.tools, turn.signal);
  await new AgentLoop(options, turnTools(toolbox, agent, turn)).run();
}

/** What the model answered to one call. */
interface Answered {
  readonly read: StepReader;
  readonly streamed: StreamedCalls;
  /**
   * The last batch. Held back, to be written in one batch with the tool calls or the terminal
   * event.
   */
  readonly last: Batch;
  /** The digest of the request, if the connection attached data to its answer. */
  readonly prefix: string;
}

class AgentLoop {
  readonly #options: LoopOptions;
  readonly #tools: TurnTools;
  readonly #interceptors: readonly Contribution<ToolInterceptor>[];
  readonly #guard: RepeatGuard;
  readonly #limits: Agent['limits'];
  #usage = NO_USAGE;
  #toolCalls: number;
  #hasText = false;

  constructor(options: LoopOptions, tools: TurnTools) {
    this.#options = options;
    this.#tools = tools;
    this.#interceptors = options.deps.toolInterceptors.all();
    const { toolCalls, maxToolCalls = Number.POSITIVE_INFINITY, repeated } = options.pending.spent;
    const { limits } = options.agent;
    this.#toolCalls = toolCalls;
    this.#limits = { ...limits, toolCalls: Math.min(limits.toolCalls, maxToolCalls) };
    this.#guard = new RepeatGuard(repeated);
  }

  async run(): Promise<void> {
    const { agent, turn, pending, transcript, write } = this.#options;
    const mayAsk = pending.mayWait(this.#tools.toolbox.tools.values());
    await write([{ type: 'started', turnId: turn.id, agent: agent.name, ...(mayAsk && { mayAsk }) }]);
    const { events, isOver, calls } = pending.opening;
    if (isOver) return void (await write([...events, this.#finished('stop')]));
    if (events.length > 0) await write(events);
    if (calls.length > 0) await this.#runEarlier(calls);
    const asking = pending.closing;
    if (asking) return void (await write([asking, this.#finished('stop')]));
    const lead = transcript.messages().length;
    const whole = pending.withResults(withPrompt(turn, agent), transcript.messages());
    // What a caller sends as a whole reaches the model as it was sent (C-057).
    const conversation = turn.session === undefined ? whole : resultsInOrder(whole);
    for (let step = 1; ; step++) {
      const messages = step === 1 ? conversation : [...conversation, ...transcript.messages().slice(lead)];
      const answered = await this.#callModel(step, messages);
      const { calls, reason, named } = answered.read;
      if (calls.length === 0) {
        const end = { ...this.#finished(reason === 'tool_calls' ? 'stop' : reason), ...named };
        await write([...answered.last, end]);
        return;
      }
      const end = await this.#runCalls(step, answered);
      if (end) {
        await write(end);
        return;
      }
    }
  }

  /** Runs calls of an earlier turn. */
  async #runEarlier(calls: readonly ServerCall[]): Promise<void> {
    const { write, onToolsStart } = this.#options;
    const starting = onToolsStart();
    if (starting) await starting;
    await write(calls.map(({ call }) => call));
    await this.#runTools(calls);
  }

  /** Writes what the model answers, up to the last batch. */
  async #callModel(step: number, messages: readonly Message[]): Promise<Answered> {
    const { agent, turn, pending, memory, deps, write } = this.#options;
    turn.signal.throwIfAborted();
    memory.account.goOn(); // it has waited: for its session, or for tools
    const asker = { request_id: turn.requestId, agent: agent.name };
    const headers: Record<string, string> = {};
    const span = startSpan('step', () => ({ turn, step, connections: agent.connections, headers }));
    const streamed = new StreamedCalls(this.#tools.streamed, deps.ids);
    const read = new StepReader((batch) => memory.say(batch), streamed);
    let last: Batch;
    let prefix = '';
    try {
      const made = {
        agent,
        turn,
        tools: this.#tools,
        conversation: this.#options.conversation,
        // A turn that goes on does not begin again: it forces no tool call.
        number: pending.spent.steps + step,
        messages,
        account: memory.account,
        headers,
      };
      const request = (connector: ModelConnector, name: string) => modelRequest(connector, name, made);
      const { connection, asked, first, rest } = await deps.models.ask(
        agent.connections,
        request,
        turn.signal,
        asker,
        mayTrim(turn, agent),
      );
      span.set({ connection });
      read.connection = connection;
      try {
        last = [{ type: 'step', step, connection }, ...read.take(first)];
        while (!read.hasEnded) {
          const full = last.length > 0 ? write(last) : undefined;
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
      if (!(error instanceof ModelError)) {
        const refusal = toolRefusal(error, this.#tools, turn);
        if (refusal instanceof TurnError && refusal.code === 'crashed') deps.models.log.error({ ...asker }, refusal.message);
        throw refusal;
      }
      if (!turn.signal.aborted) deps.models.onFailure(read.connection, error, asker);
      throw modelFailed(error);
    }
    this.#usage = addUsage(this.#usage, read.usage);
    this.#hasText ||= read.hasText;
    return { read, streamed, last, prefix };
  }

  /**
   * Runs the calls of a step, if the limits of the agent allow another one. Returns the last batch
   * of the turn, if the turn ends with them.
   */
  async #runCalls(step: number, { read, streamed, last, prefix }: Answered): Promise<Batch | undefined> {
    const { agent, turn, pending, write, onToolsStart } = this.#options;
    const { calls } = read;
    const isClientCall = (call: ModelToolCall) =>
      agent.kind === 'model' || turn.clientTools.some(({ name }) => name === call.name);
    const endsWithClientCalls = calls.some(isClientCall);
    const firstIndex = this.#toolCalls;
    this.#toolCalls += calls.filter((call) => !isClientCall(call)).length;
    const spent = this.#spentWith(step);
    // A turn that ends with calls of the client needs no further model call.
    const exceeded = exceededLimit({ limits: this.#limits }, endsWithClientCalls ? { ...spent, steps: 0 } : spent);
    if (exceeded) {
      const { limit, text } = exceeded;
      const said: Batch = this.#hasText ? [] : [{ type: 'text', text }];
      return [...last, ...said, { ...this.#finished('length'), limit }];
    }

    const { toolbox } = this.#tools;
    const repeated = new Set(calls.filter((made) => !isClientCall(made) && this.#guard.repeats(made.name, made.arguments)));
    pending.beginStep({ ...spent, maxToolCalls: this.#limits.toolCalls, repeated: this.#guard.last });
    const running: ServerCall[] = [];
    let index = firstIndex;
    const asked = calls.map((made): TurnToolCall | TurnApproval => {
      const origin = { connection: read.connection, prefix };
      const call = toolCall(streamed.takeId(made), made, origin, isClientCall(made) ? undefined : toolbox);
      if (!call.tool) return call;
      const own = { call, index: index++, isRepeated: repeated.has(made) };
      const instead = own.isRepeated ? undefined : pending.admit(own, toolbox.tools.get(call.name));
      if (instead && 'type' in instead) return instead;
      running.push({ ...own, instead });
      return call;
    });
    const starting = running.length > 0 ? onToolsStart() : undefined;
    if (starting) {
      if (last.length > 0) await Promise.all([write(last), starting]);
      else await starting;
      await write(asked);
    } else await write([...last, ...asked]);
    await this.#runTools(running);

    const reason = endsWithClientCalls ? 'tool_calls' : 'stop';
    const asking = pending.closing;
    if (asking) return [asking, this.#finished(reason)];
    return endsWithClientCalls ? [{ ...this.#finished(reason), ...read.named }] : undefined;
  }

  async #runTools(calls: readonly ServerCall[]): Promise<void> {
    const { agent, turn, pending, memory, deps, write } = this.#options;
    const { toolbox } = this.#tools;
    const onPostponed: PendingCalls['postpone'] = (...call) => pending.postpone(...call);
    const calling = { toolbox, agent, turn, interceptors: this.#interceptors, onPostponed };
    for await (const batch of deps.tools.run(calls, calling)) {
      memory.addResults(batch);
      await write(batch);
    }
  }

  /** What the turn has used of the agent's limits with this step. */
  #spentWith(step: number): Spent {
    const { spent } = this.#options.pending;
    return { steps: spent.steps + step, toolCalls: this.#toolCalls, tokens: spent.tokens + tokensUsed(this.#usage) };
  }

  #finished(reason: TurnFinished['reason']): TurnFinished {
    return { type: 'finished', reason, usage: this.#usage };
  }
}

function tokensUsed({ promptTokens, completionTokens }: Usage): number {
  return promptTokens + completionTokens;
}

/** @param id the one that callers see. */
function toolCall(id: string, call: ModelToolCall, origin: Omit<Extra, 'data'>, toolbox: Toolbox | undefined): TurnToolCall {
  const known = toolbox?.tools.get(call.name);
  const tool = toolbox ? { entry: known?.entry ?? '', name: known?.tool.name ?? call.name } : undefined;
  const extra = call.extra === undefined ? undefined : { ...origin, data: call.extra };
  return { type: 'tool-call', id, name: call.name, arguments: call.arguments, tool, extra };
}
