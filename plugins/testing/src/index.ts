/**
 * The kit for tests of plugins: a context to register in, contract suites, and a scripted model
 * server.
 */

export { systemClock } from '@plugboard/kernel/internal';
export { CapturedLog, type LogLine } from './base/captured-log.js';
export { ManualClock } from './base/clock.js';
export { eventually } from './base/eventually.js';
export { SequentialIds } from './base/ids.js';
export { checkOptions } from './context/options.js';
export { ScriptedRuntime } from './context/scripted-runtime.js';
export { type TestContext, testContext } from './context/test-context.js';
export { testToolCall } from './context/tool-call.js';
export { turnEvents } from './context/turn-events.js';
export { Contract, type DeclareTest } from './contract/contract.js';
export { type ChatRequest, contentText, ModelServer, type ReceivedRequest, type Script } from './model-server/model-server.js';
export { pluginContract } from './plugin/plugin-contract.js';
export { settingsList } from './plugin/settings-list.js';
export { type StartedServer, type StartServerOptions, startServer } from './server/start-server.js';
export { writeUntilKilled } from './session-store/cases/kill-cases.js';
export type { StoreQuotas } from './session-store/cases/quota-cases.js';
export { sessionStoreContract } from './session-store/session-store-contract.js';
export { agentRuntimeContract } from './suites/agent-runtime.js';
export { authProviderContract } from './suites/auth-provider.js';
export { commandContract } from './suites/command.js';
export { interceptorContract, testTurn } from './suites/interceptor.js';
export { modelConnectorContract, modelRequest } from './suites/model-connector.js';
export { testModelCall } from './suites/model-interceptor.js';
export { toolSourceContract } from './suites/tool-source.js';
export { transportContract } from './suites/transport.js';
