import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { createGraph } from '@plugboard/kernel/injection';
import { configSchema } from './config.js';
import { checkConfig } from './directory/check-config.js';
import { FailureLog } from './lifecycle/failure-log.js';
import { IdempotencyClaims } from './lifecycle/idempotency.js';
import { RunningTurns } from './lifecycle/running-turns.js';
import { CredentialTurnLimiter } from './limits/credential-turn-limiter.js';
import { RequestRates } from './limits/request-rates.js';
import { TurnLimiter } from './limits/turn-limiter.js';
import { TurnMemory } from './limits/turn-memory.js';
import { Runtime } from './runtime.js';
import { ApprovalOperations } from './sessions/approval-operations.js';
import { SessionOperations } from './sessions/session-operations.js';
import { SessionSupervisor } from './sessions/session-supervisor.js';
import { StoreHealth } from './store/store-health.js';
import { ToolRunner } from './tools/tool-runner.js';
import { AgentCardOperations } from './turn/agent-card-operations.js';
import { CurrentAgents } from './turn/current-agents.js';
import { TurnRunner } from './turn/turn-runner.js';

export default definePlugin({
  name: '@plugboard/agent-runtime',
  apiVersion: 1,
  summary: 'Runs agents: the directory, the tool-calling loop and sessions',
  configSchema,
  check: checkConfig,
  register(ctx) {
    const runtime = createGraph(ctx, Runtime, [
      AgentCardOperations,
      ApprovalOperations,
      CredentialTurnLimiter,
      CurrentAgents,
      FailureLog,
      IdempotencyClaims,
      RequestRates,
      RunningTurns,
      SessionOperations,
      SessionSupervisor,
      StoreHealth,
      ToolRunner,
      TurnLimiter,
      TurnMemory,
      TurnRunner,
    ]);
    ctx.contribute(AgentRuntimes, runtime);
    return runtime;
  },
});
