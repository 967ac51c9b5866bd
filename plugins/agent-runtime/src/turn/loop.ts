import type { Message, Turn } from '@plugboard/kernel';
import { type AgentEvent, type ModelConnector, ModelError, type ModelRequest } from '@plugboard/kernel';
import {
  addUsage,
  type ModelToolCall,
  NO_USAGE,
  type SessionId,
  type ToolDeclaration,
  type Transcript,
  TurnError,
  type TurnFinished,
  type TurnToolCall,
  textOf,
} from '@plugboard/kernel/contracts';
import { startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import { answerTokens, followUpToolChoice } from '../directory/parameters.js';
import { withOwnExtras } from '../history/extra.js';
import { trimConversation } from '../history/history-view.js';
import { tokensOf } from '../history/message-size.js';
import type { LoopDependencies } from '../lifecycle/turn-context.js';
import { modelFailed } from '../model/model-calls.js';
import { messagesFor } from '../model/model-messages.js';
import { type RequestOrigin, requestOrigin } from '../model/request-origin.js';
import { StepReader } from '../model/step-reader.js';
import { StreamedCalls } from '../model/streamed-calls.js';
import type { WriteBatch } from '../streams/pulled.js';
import { RepeatGuard } from '../tools/repeat-guard.js';
import { type Toolbox, toolboxWith } from '../tools/toolbox.js';

/**
 * The agent loop: calls the model, runs the tools that it calls and returns their results to it,
 * until it answers without a call, a limit is reached, or it calls a client tool.
 *
 * @param transcript collects the events of the turn, but the terminal one.
 * @param write receives the events of the turn.
 * @param onToolsStart called before tools of the agent start. They wait for what it returns.
 * @throws TurnError with a message for the caller, or another error, which is a defect.
 */
export async function runLoop(
  agent: Agent,
  turn: Turn,
  transcript: Transcript,
  deps: LoopDependencies,
  write: WriteBatch,
  onToolsStart: () => Promise<void> | undefined,
): Promise<void> {
  const toolbox = toolboxWith(await deps.toolboxes.of(agent.tools, turn.signal), turn.tools);
  assertDistinctTools(turn.clientTools, toolbox);
  await write([{ type: 'started', turnId: turn.id, agent: agent.name }]);

  const declarations = turn.clientTools.length === 0 ? toolbox.declarations : [...toolbox.declarations, ...turn.clientTools];
  const conversation = withPrompt(turn, agent);
  const streamedTools = turn.incremental ? turn.clientTools.map(({ name }) => name) : [];
  const guard = new RepeatGuard();
  const interceptors = deps.toolInterceptors.all();
  const origin = requestOrigin(turn, sessionOf(turn));
  const asker = { request_id: turn.requestId, agent: agent.name };
  let usage = NO_USAGE;
  let toolCalls = 0;
  let hasText = false;

  for (let step = 1; ; step++) {
    const messages = step === 1 ? conversation : [...conversation, ...transcript.messages()];
    turn.signal.throwIfAborted();
    const headers: Record<string, string> = {};
    const span = startSpan('step', () => ({ turn, step, connections: agent.connections, headers }));
    const streamed = new StreamedCalls(streamedTools, deps.ids);
    const read = new StepReader(streamed);
    /**
     * The last batch. Held back, to be written in one batch with the tool calls or the terminal
     * event.
     */
    let last: readonly AgentEvent[] = [];
    try {
      const request = (connector: ModelConnector, name: string) =>
        requestFor(connector, name, agent, turn, step, messages, { declarations, streamedTools }, origin, headers);
      const { connection, first, rest } = await deps.models.ask(agent.connections, request, turn.signal, asker);
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
      if (read.extra !== undefined) {
        const extra: AgentEvent = { type: 'extra', extra: { connection, data: read.extra } };
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
      await write([...last, finished(reason === 'tool_calls' ? 'stop' : reason, usage)]);
      return;
    }

    const isClientCall = (call: ModelToolCall) =>
      agent.kind === 'model' || turn.clientTools.some(({ name }) => name === call.name);
    const endsWithClientCalls = calls.some(isClientCall);
    const ownCalls = calls.filter((call) => !isClientCall(call)).length;
    const limit = exceededLimit(agent, {
      // Such a turn needs no further model call.
      step: endsWithClientCalls ? 0 : step,
      toolCalls: toolCalls + ownCalls,
      tokens: usage.promptTokens + usage.completionTokens,
    });
    if (limit) {
      const text: readonly AgentEvent[] = hasText ? [] : [{ type: 'text', text: LIMIT_MESSAGES[limit](agent) }];
      transcript.add(text);
      await write([...last, ...text, { ...finished('length', usage), limit }]);
      return;
    }

    const asked = calls.map((call) =>
      toolCall(streamed.takeId(call), call, read.connection, isClientCall(call) ? undefined : toolbox),
    );
    transcript.add(asked);
    const starting = asked.some(({ tool }) => tool !== undefined) ? onToolsStart() : undefined;
    if (starting) {
      if (last.length > 0) await Promise.all([write(last), starting]);
      else await starting;
      last = [];
    }
    await write([...last, ...asked]);
    const firstIndex = toolCalls;
    toolCalls += ownCalls;
    const own = asked.filter(({ tool }) => tool !== undefined).map((call, offset) => ({ call, index: firstIndex + offset }));
    for await (const batch of deps.tools.run(own, { toolbox, guard, agent, turn, interceptors })) {
      transcript.add(batch);
      await write(batch);
    }
    if (endsWithClientCalls) {
      await write([finished('tool_calls', usage)]);
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
  const own = withOwnExtras(messagesFor(connector, fitting), name);
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
  { session, params }: Turn,
  messages: readonly Message[],
  tools: readonly ToolDeclaration[],
): readonly Message[] {
  if (contextWindow >= agent.contextWindow || session === undefined || agent.history.policy === 'error') return messages;
  return trimConversation(messages, contextWindow - answerTokens(params, contextWindow) - tokensOf(tools));
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

function assertDistinctTools(clientTools: readonly ToolDeclaration[], toolbox: Toolbox): void {
  const duplicate = clientTools.findIndex(({ name }) => toolbox.tools.has(name));
  if (duplicate < 0) return;
  const name = clientTools[duplicate]?.name;
  throw new TurnError('invalid_request', `The tool '${name}' has the same name as one of the agent's own tools; rename it.`, {
    param: `tools[${duplicate}].function.name`,
  });
}

/** @param id the one that callers see. */
function toolCall(id: string, call: ModelToolCall, connection: string, toolbox: Toolbox | undefined): TurnToolCall {
  const known = toolbox?.tools.get(call.name);
  const tool = toolbox ? { entry: known?.entry ?? '', name: known?.tool.name ?? call.name } : undefined;
  const extra = call.extra === undefined ? undefined : { connection, data: call.extra };
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
