import { type Extensions, type PluginContext, type SessionStore, SessionStores } from '@plugboard/kernel';
import { ExpiryClock } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { SessionHistory } from '../sessions/conversation/session-history.js';
import { ApprovalRecords } from '../sessions/pending/approval-records.js';
import { type StoreCall, storeCalls } from '../sessions/store/store-call.js';
import { CurrentAgents } from './current-agents.js';
import { CredentialTurnLimiter } from './limits/credential-turn-limiter.js';
import { TurnLimiter } from './limits/turn-limiter.js';
import { TurnMemory } from './limits/turn-memory.js';
import { ToolRunner } from './tools/tool-runner.js';
import { FailureLog } from './turn/failure-log.js';
import { runTurn } from './turn/run-turn.js';
import type { TurnTask } from './turn/turn-task.js';

/** Runs turns with the agents that are in force when they start. */
export class TurnRunner {
  readonly #context: PluginContext;
  readonly #expiry: ExpiryClock;
  readonly #stores: Extensions<SessionStore>;
  readonly #storeCall: StoreCall;
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
    this.#expiry = new ExpiryClock(context.clock);
    this.#stores = context.extensions(SessionStores);
    this.#storeCall = storeCalls(context.clock);
    this.#agents = agents;
    this.#limiter = limiter;
    this.#credentials = credentials;
    this.#memory = memory;
    this.#tools = tools;
    this.#failures = failures;
  }

  /**
   * Runs the phases of a turn. Never rejects.
   * @param history the history of the turn's session, if it has one.
   */
  async run(turn: TurnTask, history?: SessionHistory): Promise<void> {
    const { host, clock, ids, log, pin } = this.#context;
    const { revision } = this.#agents;
    await runTurn(turn, history, {
      host,
      clock,
      ids,
      pin,
      stores: this.#stores,
      storeCall: this.#storeCall,
      approvals: new ApprovalRecords(this.#stores.one(), this.#storeCall, this.#expiry, log),
      log,
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
