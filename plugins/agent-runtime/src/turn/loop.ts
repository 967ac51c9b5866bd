import type { Message, Turn } from '@plugboard/kernel';
import { type AgentEvent, type ModelConnector, ModelError, type ModelRequest } from '@plugboard/kernel';
import {
  addUsage,
  type Extra,
  type ModelToolCall,
  NO_USAGE,
  type SessionId,
  type ToolDeclaration,
  type Transcript,
  type TurnApproval,
  TurnError,
  type TurnFinished,
  type TurnText,
  type TurnToolCall,
  textOf,
  type Usage,
} from '@plugboard/kernel/contracts';
import type { NewApproval } from '../approvals/approval.js';
import { approvalNotice } from '../approvals/notice.js';
import { approvalEvent, type TurnApprovals } from '../approvals/turn-approvals.js';
import { withLead } from '../conversation/approved-results.js';
import { startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import { answerTokens, followUpToolChoice } from '../directory/parameters.js';
import { withOwnExtras } from '../history/extra.js';
import { trimConversation } from '../history/history-view.js';
import { withoutRefusedMedia } from '../history/media.js';
import { tokensOf } from '../history/message-size.js';
import { prefixOf } from '../history/prefix.js';
import type { LoopDependencies } from '../lifecycle/turn-context.js';
import type { AnswerMemory } from '../limits/answer-memory.js';
import { modelFailed } from '../model/model-calls.js';
import { messagesFor } from '../model/model-messages.js';
import { type RequestOrigin, requestOrigin } from '../model/request-origin.js';
import { StepReader } from '../model/step-reader.js';
import { StreamedCalls } from '../model/streamed-calls.js';
import type { WriteBatch } from '../streams/pulled.js';
import { RepeatGuard } from '../tools/repeat-guard.js';
import type { ServerCall } from '../tools/tool-runner.js';
import { byName, type Toolbox, toolboxWith } from '../tools/toolbox.js';

export interface LoopOptions {
  readonly agent: Agent;
  readonly turn: Turn;
  readonly approvals: TurnApprovals;
  /** Collects the events of the turn, but the terminal one. */
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
 * approval. Calls of an earlier turn that were approved run first.
 *
 * @throws TurnError with a message for the caller, or another error, which is a defect.
 */
export async function runLoop({
  agent,
  turn,
  approvals,
  transcript,
  memory,
  deps,
  write,
  onToolsStart,
}: LoopOptions): Promise<void> {
  const toolbox = withoutClientTools(toolboxWith(await deps.toolboxes.of(agent.tools, turn.signal), turn.tools), agent, turn);
  assertDistinctTools(turn.clientTools, toolbox);
  await write([{ type: 'started', turnId: turn.id, agent: agent.name }]);

  const declarations =
    turn.clientTools.length === 0 ? toolbox.declarations : [...toolbox.declarations, ...byName(turn.clientTools)];
  const streamedTools = turn.incremental ? turn.clientTools.map(({ name }) => name) : [];
  const guard = new RepeatGuard();
  const interceptors = deps.toolInterceptors.all();
  const origin = requestOrigin(turn, sessionOf(turn));
  const calling = { toolbox, guard, agent, turn, interceptors, approvals };
  const asker = { request_id: turn.requestId, agent: agent.name };
  const { spent } = approvals;
  let usage = NO_USAGE;
  let { toolCalls } = spent;
  let hasText = false;

  if (approvals.waiting.length > 0) {
    await write([...approvals.waiting.map(approvalEvent), noticeOf(approvals.waiting, approvals), finished('stop', usage)]);
    return;
  }
  const approved = approvals.calls;
  if (approved.length > 0) {
    const starting = onToolsStart();
    if (starting) await starting;
    const events = approved.map(({ call }) => call);
    transcript.add(events);
    await write(events);
    for await (const batch of deps.tools.run(approved, calling)) {
      memory.addResults(batch);
      transcript.add(batch);
      await write(batch);
    }
  }
  const lead = transcript.messages().length;
  const conversation = withLead(withPrompt(turn, agent), transcript.messages());

  for (let step = 1; ; step++) {
    const messages = step === 1 ? conversation : [...conversation, ...transcript.messages().slice(lead)];
    turn.signal.throwIfAborted();
    const headers: Record<string, string> = {};
    const span = startSpan('step', () => ({ turn, step, connections: agent.connections, headers }));
    const streamed = new StreamedCalls(streamedTools, deps.ids);
    const read = new StepReader((batch) => memory.say(batch), streamed);
    /**
     * The last batch. Held back, to be written in one batch with the tool calls or the terminal
     * event.
     */
    let last: readonly AgentEvent[] = [];
    /** The digest of the request. */
    let prefix = '';
    try {
      const request = (connector: ModelConnector, name: string) =>
        requestFor(connector, name, agent, turn, step, messages, { declarations, streamedTools }, origin, headers);
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
        let batch: readonly AgentEvent[] = [{ type: 'step', step, connection }, ...read.take(first)];
        for (;;) {
          transcript.add(batch);
          if (read.hasEnded) break;
          const full = batch.length > 0 ? write(batch) : undefined;
          if (full) await full;
          batch = read.takeNext(await rest.next());
        }
        last = batch;
      } finally {
        await rest.return?.();
      }
      if (read.hasExtra) prefix = prefixOf(asked.messages, asked.tools);
      if (read.extra !== undefined) {
        const extra: AgentEvent = { type: 'extra', extra: { connection, prefix, data: read.extra } };
        transcript.add([extra]);
        last = [...last, extra];
      }
      span.set({ usage: read.usage, reason: read.reason });
      span.end();
    } catch (error) {
      span.fail(error);
      if (!(error instanceof ModelError)) throw error;
      if (!turn.signal.aborted) deps.models.onFailure(read.connection, error, asker);
      throw modelFailed(error);
    }
    usage = addUsage(usage, read.usage);
    hasText ||= read.hasText;
    const { calls, reason } = read;
    if (calls.length === 0) {
      await write([...last, { ...finished(reason === 'tool_calls' ? 'stop' : reason, usage), ...read.named }]);
      return;
    }

    const isClientCall = (call: ModelToolCall) =>
      agent.kind === 'model' || turn.clientTools.some(({ name }) => name === call.name);
    const endsWithClientCalls = calls.some(isClientCall);
    const ownCalls = calls.filter((call) => !isClientCall(call)).length;
    const limit = exceededLimit(agent, {
      // Such a turn needs no further model call.
      step: endsWithClientCalls ? 0 : spent.steps + step,
      toolCalls: toolCalls + ownCalls,
      tokens: spent.tokens + tokensUsed(usage),
    });
    if (limit) {
      const text: readonly AgentEvent[] = hasText ? [] : [{ type: 'text', text: LIMIT_MESSAGES[limit](agent) }];
      transcript.add(text);
      await write([...last, ...text, { ...finished('length', usage), limit }]);
      return;
    }

    const firstIndex = toolCalls;
    toolCalls += ownCalls;
    approvals.beginStep(turn.id, { steps: spent.steps + step, toolCalls, tokens: spent.tokens + tokensUsed(usage) });
    const running: ServerCall[] = [];
    let index = firstIndex;
    const asked = calls.map((made): TurnToolCall | TurnApproval => {
      const call = toolCall(
        streamed.takeId(made),
        made,
        { connection: read.connection, prefix },
        isClientCall(made) ? undefined : toolbox,
      );
      if (!call.tool) return call;
      const own = { call, index: index++ };
      const waits = callToApprove(own, agent, toolbox, approvals);
      if (!waits) running.push(own);
      return waits ?? call;
    });
    transcript.add(asked);
    const starting = running.length > 0 ? onToolsStart() : undefined;
    if (starting) {
      if (last.length > 0) await Promise.all([write(last), starting]);
      else await starting;
      last = [];
    }
    await write([...last, ...asked]);
    for await (const batch of deps.tools.run(running, calling)) {
      memory.addResults(batch);
      transcript.add(batch);
      await write(batch);
    }
    if (approvals.asked.length > 0) {
      const notice = noticeOf(approvals.asked, approvals, read.hasText);
      await write([notice, finished(endsWithClientCalls ? 'tool_calls' : 'stop', usage)]);
      return;
    }
    if (endsWithClientCalls) {
      await write([{ ...finished('tool_calls', usage), ...read.named }]);
      return;
    }
  }
}

function requestFor(
  connector: ModelConnector,
  name: string,
  agent: Agent,
  turn: Turn,
  step: number,
  messages: readonly Message[],
  tools: { readonly declarations: readonly ToolDeclaration[]; readonly streamedTools: readonly string[] },
  origin: RequestOrigin,
  headers: Record<string, string>,
): ModelRequest {
  const params: Record<string, unknown> = {};
  for (const name in turn.params) {
    if (!connector.supportsParam(name)) continue;
    const value = step > 1 && name === 'tool_choice' ? followUpToolChoice(turn.params[name]) : turn.params[name];
    if (value !== undefined) params[name] = value;
  }
  const { declarations, streamedTools } = tools;
  const fitting = fittingMessages(connector, agent, turn, messages, declarations);
  const accepted = withoutRefusedMedia(messagesFor(connector, fitting), connector);
  const own = withOwnExtras(accepted, name, declarations);
  return { messages: own, tools: declarations, params, incremental: turn.incremental, streamedTools, ...origin, headers };
}

/** The session of a turn: its `session` is the key after `api:`. */
function sessionOf({ principal, agent, session }: Turn): SessionId | undefined {
  return session === undefined ? undefined : { project: principal.project, agent, key: session.slice('api:'.length) };
}

/**
 * Fits the messages to another connection: the history of a session fits the first one only, and
 * others may have smaller windows.
 */
function fittingMessages(
  { contextWindow }: ModelConnector,
  agent: Agent,
  turn: Turn,
  messages: readonly Message[],
  tools: readonly ToolDeclaration[],
): readonly Message[] {
  if (contextWindow >= agent.contextWindow || !mayTrim(turn, agent)) return messages;
  return trimConversation(messages, contextWindow - answerTokens(turn.params, contextWindow) - tokensOf(tools));
}

/** Whether the oldest turns may be left out: of a session, unless its agent says otherwise. */
function mayTrim({ session }: Turn, agent: Agent): boolean {
  return session !== undefined && agent.history.policy !== 'error';
}

/**
 * Adds the prompt. A system message that an interceptor put first becomes part of it: some model
 * servers take only one.
 */
function withPrompt({ system, messages }: Turn, agent: Agent): readonly Message[] {
  if (system === undefined) return messages;
  const [first] = messages;
  if (first?.role !== 'system') {
    const prompt = agent.prompt?.content === system ? agent.prompt : { role: 'system' as const, content: system };
    return [prompt, ...messages];
  }
  return [{ ...first, content: `${system}\n\n${textOf(first.content)}` }, ...messages.slice(1)];
}

/**
 * Lets a call wait for approval, if it needs one. Mistakes of the model are not shown to a person.
 */
function callToApprove(own: ServerCall, agent: Agent, { tools }: Toolbox, approvals: TurnApprovals): TurnApproval | undefined {
  const known = tools.get(own.call.name);
  if (!known || approvals.refusal || !agent.approves(known) || 'fault' in known.check(own.call.arguments)) return undefined;
  return approvals.ask(own, known);
}

/** The server's text about the calls that wait. */
function noticeOf(
  waiting: readonly Pick<NewApproval, 'call' | 'code'>[],
  { visibility }: TurnApprovals,
  followsText = false,
): TurnText {
  return { type: 'text', text: `${followsText ? '\n\n' : ''}${approvalNotice(waiting, visibility)}`, isNotice: true };
}

/**
 * The agent's tools. Without a session nothing can wait for approval: a tool that needs it gives
 * way to a client tool of its name, so that the caller decides.
 */
function withoutClientTools(toolbox: Toolbox, agent: Agent, { session, clientTools }: Turn): Toolbox {
  if (session !== undefined) return toolbox;
  const replaced = new Set(
    clientTools.flatMap(({ name }) => {
      const known = toolbox.tools.get(name);
      return known && agent.approves(known) ? [name] : [];
    }),
  );
  if (replaced.size === 0) return toolbox;
  return {
    declarations: toolbox.declarations.filter(({ name }) => !replaced.has(name)),
    tools: new Map([...toolbox.tools].filter(([name]) => !replaced.has(name))),
  };
}

function tokensUsed({ promptTokens, completionTokens }: Usage): number {
  return promptTokens + completionTokens;
}

function assertDistinctTools(clientTools: readonly ToolDeclaration[], toolbox: Toolbox): void {
  const duplicate = clientTools.findIndex(({ name }) => toolbox.tools.has(name));
  if (duplicate < 0) return;
  const name = clientTools[duplicate]?.name;
  throw new TurnError('invalid_request', `The tool '${name}' has the same name as one of the agent's own tools; rename it.`, {
    param: `tools[${duplicate}].function.name`,
  });
}

/** @param id the one that callers see. */
function toolCall(id: string, call: ModelToolCall, origin: Omit<Extra, 'data'>, toolbox: Toolbox | undefined): TurnToolCall {
  const known = toolbox?.tools.get(call.name);
  const tool = toolbox ? { entry: known?.entry ?? '', name: known?.tool.name ?? call.name } : undefined;
  const extra = call.extra === undefined ? undefined : { ...origin, data: call.extra };
  return { type: 'tool-call', id, name: call.name, arguments: call.arguments, tool, extra };
}

function finished(reason: TurnFinished['reason'], usage: TurnFinished['usage']): TurnFinished {
  return { type: 'finished', reason, usage };
}

type Limit = NonNullable<TurnFinished['limit']>;

/** The limit that another step would exceed, if any. */
function exceededLimit({ limits }: Agent, would: { step: number; toolCalls: number; tokens: number }): Limit | undefined {
  if (would.step >= limits.steps) return 'max_steps';
  if (would.toolCalls > limits.toolCalls) return 'max_tool_calls';
  if (would.tokens >= limits.tokens) return 'max_tokens';
  return undefined;
}

/** The answer of a turn that reached a limit before the model answered. */
const LIMIT_MESSAGES: Record<Limit, (agent: Agent) => string> = {
  max_steps: ({ limits }) => `The agent reached its limit of ${limits.steps} model calls before it finished.`,
  max_tool_calls: ({ limits }) => `The agent reached its limit of ${limits.toolCalls} tool calls before it finished.`,
  max_tokens: ({ limits }) => `The agent reached its limit of ${limits.tokens} tokens before it finished.`,
};
