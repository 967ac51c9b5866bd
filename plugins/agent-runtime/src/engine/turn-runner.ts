import type { PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { CurrentAgents } from './current-agents.js';
import { CredentialTurnLimiter } from './limits/credential-turn-limiter.js';
import { TurnLimiter } from './limits/turn-limiter.js';
import { TurnMemory } from './limits/turn-memory.js';
import { ToolRunner } from './tools/tool-runner.js';
import type { OpenConversation } from './turn/conversation.js';
import { FailureLog } from './turn/failure-log.js';
import { runTurn } from './turn/run-turn.js';
import type { TurnTask } from './turn/turn-task.js';

/** Runs turns with the agents that are in force when they start. */
export class TurnRunner {
  readonly #context: PluginContext;
  readonly #agents: CurrentAgents;
  readonly #limiter: TurnLimiter;
  readonly #credentials: CredentialTurnLimiter;
  readonly #memory: TurnMemory;
  readonly #tools: ToolRunner;
  readonly #failures: FailureLog;

  constructor(
    @inject(CONTEXT) context: PluginContext,
    @inject(CurrentAgents) agents: CurrentAgents,
    @inject(TurnLimiter) limiter: TurnLimiter,
    @inject(CredentialTurnLimiter) credentials: CredentialTurnLimiter,
    @inject(TurnMemory) memory: TurnMemory,
    @inject(ToolRunner) tools: ToolRunner,
    @inject(FailureLog) failures: FailureLog,
  ) {
    this.#context = context;
    this.#agents = agents;
    this.#limiter = limiter;
    this.#credentials = credentials;
    this.#memory = memory;
    this.#tools = tools;
    this.#failures = failures;
  }

  /**
   * Runs the phases of a turn. Never rejects.
   * @param open opens its conversation.
   */
  async run(turn: TurnTask, open: OpenConversation): Promise<void> {
    const { host, clock, ids, pin } = this.#context;
    const { revision } = this.#agents;
    await runTurn(turn, open, {
      host,
      clock,
      ids,
      pin,
      limiter: this.#limiter,
      credentials: this.#credentials,
      memory: this.#memory,
      tools: this.#tools,
      failures: this.#failures,
      models: revision.models,
      toolboxes: revision.toolboxes,
      interceptors: revision.interceptors,
      toolInterceptors: revision.toolInterceptors,
      targetOf: (request) => revision.targetOf(request),
    });
  }
}
