import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { createGraph } from '@plugboard/kernel/injection';
import { configSchema } from './config.js';
import { AgentCardOperations } from './engine/agent-card-operations.js';
import { checkConfig } from './engine/directory/check-config.js';
import { RequestRates } from './engine/limits/request-rates.js';
import { TurnLimiter } from './engine/limits/turn-limiter.js';
import { TurnMemory } from './engine/limits/turn-memory.js';
import { CurrentAgents } from './engine/revision/current-agents.js';
import { ToolRunner } from './engine/tools/tool-runner.js';
import { RunningTurns } from './engine/turn/running-turns.js';
import { TurnRunner } from './engine/turn/turn-runner.js';
import { Runtime } from './runtime.js';
import { ApprovalOperations } from './sessions/approval-operations.js';
import { ApprovalRecords } from './sessions/pending/approval-records.js';
import { SessionOperations } from './sessions/session-operations.js';
import { SessionSupervisor } from './sessions/session-supervisor.js';
import { IdempotencyClaims } from './sessions/store/idempotency.js';
import { SessionStorage } from './sessions/store/session-storage.js';

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
      CurrentAgents,
      IdempotencyClaims,
      RequestRates,
      RunningTurns,
      SessionOperations,
      SessionStorage,
      SessionSupervisor,
      ToolRunner,
      TurnLimiter,
      TurnMemory,
      TurnRunner,
    ]);
    ctx.contribute(AgentRuntimes, runtime);
    return runtime;
  },
});
