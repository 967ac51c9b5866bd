import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { createGraph } from '@plugboard/kernel/injection';
import { configSchema } from './config.js';
import { AgentCardOperations } from './engine/agent-card-operations.js';
import { CurrentAgents } from './engine/current-agents.js';
import { checkConfig } from './engine/directory/check-config.js';
import { CredentialTurnLimiter } from './engine/limits/credential-turn-limiter.js';
import { RequestRates } from './engine/limits/request-rates.js';
import { TurnLimiter } from './engine/limits/turn-limiter.js';
import { TurnMemory } from './engine/limits/turn-memory.js';
import { ToolRunner } from './engine/tools/tool-runner.js';
import { FailureLog } from './engine/turn/failure-log.js';
import { RunningTurns } from './engine/turn/running-turns.js';
import { TurnRunner } from './engine/turn-runner.js';
import { Runtime } from './runtime.js';
import { ApprovalOperations } from './sessions/approval-operations.js';
import { TurnConversations } from './sessions/conversation/conversations.js';
import { ApprovalRecords } from './sessions/pending/approval-records.js';
import { SessionOperations } from './sessions/session-operations.js';
import { SessionSupervisor } from './sessions/session-supervisor.js';
import { IdempotencyClaims } from './sessions/store/idempotency.js';
import { StoreHealth } from './sessions/store/store-health.js';

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
      ApprovalRecords,
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
      TurnConversations,
      TurnLimiter,
      TurnMemory,
      TurnRunner,
    ]);
    ctx.contribute(AgentRuntimes, runtime);
    return runtime;
  },
});
