import type { Clock, Extensions, HostView, IdSource, Interceptor, ToolInterceptor } from '@plugboard/kernel';
import type { TurnRequest } from '@plugboard/kernel/contracts';
import type { Agent } from '../directory/agent.js';
import type { ConcurrencyLimiter } from '../limits/concurrency-limiter.js';
import type { CredentialTurnLimiter } from '../limits/credential-turn-limiter.js';
import type { TurnMemory } from '../limits/turn-memory.js';
import type { ModelCalls } from '../model/model-calls.js';
import type { ToolRunner } from '../tools/tool-runner.js';
import type { Toolboxes } from '../tools/toolbox.js';
import type { FailureLog } from './failure-log.js';
import type { TurnTask } from './turn-task.js';

/** What the agent loop needs. */
export interface LoopDependencies {
  readonly ids: IdSource;
  readonly models: ModelCalls;
  readonly toolboxes: Toolboxes;
  readonly tools: ToolRunner;
  readonly toolInterceptors: Extensions<ToolInterceptor>;
}

/** What the phases of a turn need. */
export interface TurnDependencies extends LoopDependencies {
  readonly host: HostView;
  readonly clock: Clock;
  readonly interceptors: Extensions<Interceptor>;
  readonly limiter: ConcurrencyLimiter;
  readonly credentials: CredentialTurnLimiter;
  readonly memory: TurnMemory;
  readonly failures: FailureLog;
  /** The target of a request, as it is now. @throws TurnError */
  targetOf(request: TurnRequest): TurnRequest['target'];
  /**
   * Keeps the entries that the turn uses from being stopped until the returned function is called.
   */
  pin(): () => void;
}

/** An admitted turn, and what its phases need. */
export interface TurnContext {
  readonly task: TurnTask;
  readonly agent: Agent;
  /** The request, with the target as it is now. */
  readonly request: TurnRequest;
  readonly signal: AbortSignal;
  readonly deps: TurnDependencies;
}
