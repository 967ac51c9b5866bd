import { audit, type PluginContext, type Principal, type Turn } from '@plugboard/kernel';
import {
  Account,
  type AgentCard,
  type AgentCards,
  OPEN,
  type ToolRun,
  TurnError,
  type TurnToolResult,
} from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { callerFields, digestOf } from './diagnostics/log-fields.js';
import type { Agent } from './directory/agent.js';
import { mayUse } from './directory/directory.js';
import { TurnLimiter } from './limits/turn-limiter.js';
import { TurnMemory } from './limits/turn-memory.js';
import type { AgentRevision } from './revision/agent-revision.js';
import { CurrentAgents } from './revision/current-agents.js';
import type { AskingCall } from './tools/run-tool.js';
import { type PostponedCalls, ToolRunner } from './tools/tool-runner.js';
import type { AgentTool, Toolbox } from './tools/toolbox.js';
import { ParentCall } from './turn/parent-call.js';
import { NOTHING_SPENT } from './turn/pending-calls.js';
import { RunningTurns } from './turn/running-turns.js';
import { TurnUse } from './turn/turn-use.js';

/** Describes agents, and runs their tools for people. */
export class AgentCardOperations implements AgentCards {
  readonly #context: PluginContext;
  readonly #agents: CurrentAgents;
  readonly #tools: ToolRunner;
  readonly #limiter: TurnLimiter;
  readonly #running: RunningTurns;
  readonly #memory: TurnMemory;

  constructor(
    @inject(CONTEXT) context: PluginContext,
    @inject(CurrentAgents) agents: CurrentAgents,
    @inject(ToolRunner) tools: ToolRunner,
    @inject(TurnLimiter) limiter: TurnLimiter,
    @inject(RunningTurns) running: RunningTurns,
    @inject(TurnMemory) memory: TurnMemory,
  ) {
    this.#context = context;
    this.#agents = agents;
    this.#tools = tools;
    this.#limiter = limiter;
    this.#running = running;
    this.#memory = memory;
  }

  async card(name: string, principal: Principal): Promise<AgentCard | undefined> {
    const { revision } = this.#agents;
    const agent = agentFor(revision, name, principal);
    if (!agent) return undefined;
    const { kind, description, connections, input, toolVisibility, system, params } = agent;
    const { tools } = await revision.toolboxes.of(agent.tools, new AbortController().signal);
    return {
      name: agent.name,
      kind,
      description,
      connections,
      input,
      toolVisibility,
      tools: toolVisibility === 'none' ? [] : [...tools.values()].map((tool) => shownTool(tool, agent)),
      settings: isAdministrator(principal) ? { system, params } : undefined,
    };
  }

  async runTool(run: ToolRun, principal: Principal): Promise<Omit<TurnToolResult, 'type' | 'id'> | undefined> {
    const unpin = this.#context.pin();
    try {
      const { revision } = this.#agents;
      const agent = agentFor(revision, run.agent, principal);
      if (!agent) return undefined;
      assertMayRun(agent, principal);
      const toolbox = await revision.toolboxes.of(agent.tools, run.signal);
      const found = toolNamed(toolbox, run);
      if (!found) return undefined;
      const [name, known] = found;
      if (!run.isApproved && agent.approves(known)) throw needsApproval();
      const context = { agent, toolbox, principal, revision };
      return await this.#admitted(run, principal, (own) => this.#run(own, name, context));
    } finally {
      unpin();
    }
  }

  /**
   * Runs a call within the limits of turns, which it counts as. A stopping server waits for it, and
   * ends it at its limit.
   */
  async #admitted<T>(run: ToolRun, principal: Principal, work: (run: ToolRun) => Promise<T>): Promise<T> {
    if (this.#context.host.phase === 'stopping') throw new TurnError('draining', 'The server is stopping.', { retryAfter: 1 });
    const abort = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const untrack = this.#running.track({ ended, requestEnd: (reason) => abort.abort(reason) });
    const signal = AbortSignal.any([run.signal, abort.signal]);
    try {
      await this.#limiter.acquire(principal, signal);
      try {
        return await work({ ...run, signal });
      } finally {
        this.#limiter.release(principal);
      }
    } finally {
      untrack();
      resolve();
    }
  }

  async #run(run: ToolRun, name: string, { agent, toolbox, principal, revision }: RunContext): Promise<TurnToolResult> {
    const { ids, log } = this.#context;
    const turn = turnOf(run, agent, principal, `turn_${ids.base62(22)}`);
    const { entry, tool } = run;
    const call = {
      type: 'tool-call',
      id: `call_${ids.base62(22)}`,
      name,
      arguments: run.arguments,
      tool: { entry, name: tool },
    } as const;
    const fields = { project: principal.project, agent: agent.name, tool: `${entry}/${tool}`, request_id: run.requestId };
    audit(
      log,
      'tool_run',
      { ...fields, arguments_digest: digestOf(run.arguments), approved: run.isApproved, ...callerFields(principal) },
      'a person runs a tool',
    );
    const context = {
      toolbox,
      agent,
      turn,
      interceptors: revision.toolInterceptors.all(),
      pending: run.isApproved ? undefined : REFUSED,
      onAsking: (asking: AskingCall) => this.#onAsking(asking, turn, { agent, revision }),
      assertLease: () => {}, // it is in no session
    };
    let result: TurnToolResult | undefined;
    await this.#tools.run([{ call, index: 0 }], context, (batch) => {
      result ??= batch.find((event) => event.type === 'tool-result');
      return undefined;
    });
    if (!result) throw new Error('a tool call ended without a result');
    return result;
  }

  /** The tool is an agent: what it does counts as if the agent that has the tool had asked it. */
  #onAsking(asking: AskingCall, turn: Turn, { agent, revision }: Pick<RunContext, 'agent' | 'revision'>): ParentCall {
    const { principal, messages, clientTools, params, incremental, requestId, metadata, signal } = turn;
    const request = { target: agent, principal, messages, clientTools, params, incremental, requestId, metadata, signal };
    const account = new Account(this.#memory.budget, principal);
    const use = new TurnUse(agent.limits, NOTHING_SPENT, undefined);
    const none = { lease: undefined, canWait: false, above: undefined } as const;
    return new ParentCall({ ...asking, request, account, revision, use, ...none });
  }
}

interface RunContext {
  readonly agent: Agent;
  readonly toolbox: Toolbox;
  readonly principal: Principal;
  readonly revision: AgentRevision;
}

/** The same for an unknown agent and one of another project. */
function agentFor({ directory }: AgentRevision, name: string, principal: Principal): Agent | undefined {
  const agent = directory.named(name);
  return agent && mayUse(principal, agent) ? agent : undefined;
}

function isAdministrator(principal: Principal): boolean {
  return principal === OPEN || principal.scopes.includes('admin');
}

function assertMayRun({ toolVisibility }: Agent, principal: Principal): void {
  if (!isAdministrator(principal)) throw new TurnError('forbidden', 'This API token lacks the scope `admin`.');
  if (toolVisibility === 'full') return;
  throw new TurnError('forbidden', `The agent hides what its tools do (\`toolVisibility: ${toolVisibility}\`).`);
}

function needsApproval(): TurnError {
  return new TurnError('approval_pending', 'A person must approve this call: send `"approve": true` with it.');
}

/** Nothing waits here: the person decides at once. */
const REFUSED: PostponedCalls = {
  canWait: false,
  postpone() {
    throw needsApproval();
  },
};

function shownTool(known: AgentTool, agent: Agent): AgentCard['tools'][number] {
  const { entry, tool, effect } = known;
  const { name, description, inputSchema } = tool;
  if (agent.toolVisibility !== 'full') return { entry, name };
  return { entry, name, details: { description, inputSchema, effect, needsApproval: agent.approves(known) } };
}

/** The tool, and its name at the model. */
function toolNamed({ tools }: Toolbox, { entry, tool }: ToolRun): [string, AgentTool] | undefined {
  return [...tools].find(([, known]) => known.entry === entry && known.tool.name === tool);
}

/** The turn that the call would belong to: without a model, a session and messages. */
function turnOf({ requestId, signal }: ToolRun, agent: Agent, principal: Principal, id: string): Turn {
  return {
    id,
    agent: agent.name,
    principal,
    session: undefined,
    user: undefined,
    transport: undefined,
    system: undefined,
    messages: [],
    tools: [],
    clientTools: [],
    params: {},
    incremental: false,
    requestId,
    metadata: {},
    signal,
  };
}
