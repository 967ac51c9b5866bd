import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Extensions, ModelConnector, ToolSource } from '@plugboard/kernel';
import { parseDuration } from '@plugboard/kernel';
import type { SystemMessage, Target, TurnRequest } from '@plugboard/kernel/contracts';
import { DEFAULT_PROJECT } from '@plugboard/kernel/contracts';
import type { AgentSettings } from '../../config.js';
import { approvalRule, type RuledTool } from './approval-rule.js';
import { modelNames } from './check-config.js';
import { overridesParam, summaryParams } from './parameters.js';
import { nameAtModel } from './tool-names.js';

/**
 * What happens to a turn that a server crash interrupted: it is dropped, or its input is kept. Both
 * are logged.
 */
export type RestartPolicy = 'rollback' | 'keep-input';

/**
 * What the model receives of a conversation that does not fit: the newest turns, a summary and the
 * newest turns, or an error.
 */
export interface HistoryOptions {
  readonly policy: 'truncate' | 'summarize' | 'error';
  /** Limits for the stored messages, without the new ones. */
  readonly maxMessages: number;
  readonly maxTokens: number;
}

/** The limits of one turn. */
interface TurnLimits {
  readonly steps: number;
  readonly toolCalls: number;
  readonly tokens: number;
}

/**
 * A target with everything a turn needs. Immutable; created when the runtime starts, and by each
 * reload that changes something.
 */
export interface Agent extends Target {
  readonly description: string | undefined;
  /** The model connections, in order of preference. */
  readonly connections: readonly string[];
  readonly system: string | undefined;
  /** The same as a message, which is serialized once. */
  readonly prompt: SystemMessage | undefined;
  /** Patterns of the tools that it may call. */
  readonly tools: readonly string[];
  /** Whether a person must approve the calls of a tool. */
  approves(tool: RuledTool): boolean;
  /** How long a call waits for approval, in milliseconds. */
  readonly approvalExpires: number;
  readonly params: Readonly<Record<string, unknown>>;
  readonly limits: TurnLimits;
  /** Time limit of one turn, in milliseconds. */
  readonly timeout: number;
  readonly onRestart: RestartPolicy;
  readonly history: HistoryOptions;
  /** Tokens of one request and its answer together. */
  readonly contextWindow: number;
}

const agents = new WeakSet<Target>();

/** Returns the agent of a target. @throws TypeError if the target did not come from `resolve`. */
export function agentOf(target: Target): Agent {
  if (!agents.has(target)) throw new TypeError(`the target "${target.name}" does not come from resolve() of this runtime`);
  return target as Agent;
}

/**
 * The agent for one request: with the request's limits, and with its tools unless the agent ignores
 * them.
 */
export function agentForRequest({ target, clientTools, maxToolCalls, wholeHistory, summarize }: TurnRequest): Agent {
  const agent = agentOf(target);
  if (summarize) {
    return { ...agent, tools: [], params: summaryParams(agent.params, agent.limits.tokens), clientTools: 'ignore' };
  }
  const hasOwnTools = agent.clientTools === undefined && clientTools.length > 0;
  if (!hasOwnTools && maxToolCalls === undefined && !wholeHistory) return agent;
  const { limits, history } = agent;
  return {
    ...agent,
    clientTools: hasOwnTools ? 'passthrough' : agent.clientTools,
    limits: { ...limits, toolCalls: Math.min(limits.toolCalls, maxToolCalls ?? limits.toolCalls) },
    history: wholeHistory ? { ...history, policy: 'error' } : history,
  };
}

function register(agent: Agent): Agent {
  agents.add(agent);
  return agent;
}

export function configuredAgent(
  name: string,
  settings: AgentSettings,
  models: Extensions<ModelConnector>,
  tools: Extensions<ToolSource>,
  resolvePath: (path: string) => string,
): Agent {
  const { system: prompt } = settings;
  const system = typeof prompt === 'object' ? readFileSync(resolvePath(prompt.file), 'utf8').trimEnd() : prompt;
  return register({
    kind: 'agent',
    name,
    project: settings.project,
    description: settings.description,
    system,
    prompt: system === undefined ? undefined : { role: 'system', content: system },
    tools: settings.tools,
    approves: approvalRule(settings.approve),
    approvalExpires: parseDuration(settings.approvalExpires),
    params: settings.params,
    clientTools: settings.clientTools,
    toolVisibility: settings.toolVisibility,
    limits: {
      steps: settings.maxSteps,
      toolCalls: settings.maxToolCalls,
      tokens: settings.maxTokens ?? Number.POSITIVE_INFINITY,
    },
    timeout: parseDuration(settings.timeout),
    onBusy: settings.onBusy,
    onRestart: settings.onRestart,
    history: historyRules(settings.history),
    onDisconnect: settings.onDisconnect,
    fingerprint: fingerprint([name, settings, system]),
    nameAtModel: (entry, tool) => nameAtModel(entry, tool, tools.get(entry)?.single ?? entry === tool),
    ...connected(modelNames(settings), settings.params, models),
  });
}

/** Wraps a raw model connection as an agent without prompt or tools: one model call. */
export function rawModel(name: string, models: Extensions<ModelConnector>): Agent {
  return register({
    kind: 'model',
    name,
    project: DEFAULT_PROJECT,
    description: undefined,
    system: undefined,
    prompt: undefined,
    tools: [],
    approves: () => false,
    approvalExpires: 0,
    params: {},
    clientTools: 'passthrough',
    toolVisibility: 'full',
    limits: { steps: 1, toolCalls: Number.POSITIVE_INFINITY, tokens: Number.POSITIVE_INFINITY },
    timeout: parseDuration('10m'),
    onBusy: 'enqueue',
    onRestart: 'rollback',
    history: historyRules('truncate'),
    onDisconnect: 'cancel',
    fingerprint: fingerprint([name, models.get(name)?.model]),
    nameAtModel: (entry, tool) => nameAtModel(entry, tool, entry === tool),
    ...connected([name], {}, models),
  });
}

/** Properties of the agent's connections. Disabled connections are skipped. */
function connected(names: readonly string[], params: Readonly<Record<string, unknown>>, models: Extensions<ModelConnector>) {
  const connections = names.filter((name) => models.get(name) !== undefined);
  const first = models.get(connections[0] ?? '');
  const takesImages = connections.some((name) => models.get(name)?.input.includes('image'));
  return {
    connections,
    connection: connections[0] ?? '',
    // Each model call is adapted to its connection. Content that no connection accepts is refused.
    input: takesImages ? (['text', 'image'] as const) : (['text'] as const),
    contextWindow: first?.contextWindow ?? Number.POSITIVE_INFINITY,
    forwardsParam: (param: string) => !overridesParam(params, param) && first?.supportsParam(param) === true,
  };
}

function historyRules(settings: AgentSettings['history']): HistoryOptions {
  const { policy = 'truncate', maxMessages, maxTokens } = typeof settings === 'string' ? { policy: settings } : settings;
  return { policy, maxMessages: maxMessages ?? Number.POSITIVE_INFINITY, maxTokens: maxTokens ?? Number.POSITIVE_INFINITY };
}

function fingerprint(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);
}
