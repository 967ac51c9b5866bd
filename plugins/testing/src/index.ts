/**
 * The kit for tests of plugins: a context to register in, contract suites, and a scripted model
 * server.
 */
export { CapturedLog, type LogLine } from './base/captured-log.js';
export { ManualClock } from './base/clock.js';
export { eventually } from './base/eventually.js';
export { SequentialIds } from './base/ids.js';
export { type CheckedConfig, checkOptions } from './context/options.js';
export { type TestContext, type TestContextOptions, testContext } from './context/test-context.js';
export { type TestToolCall, testToolCall } from './context/tool-call.js';
export { turnEvents } from './context/turn-events.js';
export {
  BrokenPromise,
  Contract,
  type ContractCase,
  type DeclareTest,
  declareTests,
} from './contract/contract.js';
export {
  type Answer,
  type ChatRequest,
  contentText,
  type HangUp,
  ModelServer,
  type Pieces,
  type RawScript,
  type ReceivedRequest,
  type Script,
  type ScriptedCall,
  type Scripter,
  type StatusScript,
} from './model-server/model-server.js';
export { type PluginContractOptions, pluginContract } from './plugin/plugin-contract.js';
export { settingsTable } from './plugin/settings-table.js';
export { type StartedServer, type StartServerOptions, startServer } from './server/start-server.js';
export { type KilledStore, writeUntilKilled } from './session-store/cases/kill-cases.js';
export type { StoreQuotas } from './session-store/cases/quota-cases.js';
export { type SessionStoreContractOptions, sessionStoreContract } from './session-store/session-store-contract.js';
export type { OpenedStore } from './session-store/support/suite.js';
export { type AgentRuntimeContractOptions, agentRuntimeContract } from './suites/agent-runtime.js';
export { type AuthProviderContractOptions, authProviderContract } from './suites/auth-provider.js';
export { type CommandContractOptions, commandContract } from './suites/command.js';
export { assertGrammar } from './suites/event-grammar.js';
export { type InterceptorContractOptions, interceptorContract, testTurn } from './suites/interceptor.js';
export { type ModelConnectorContractOptions, modelConnectorContract, modelRequest } from './suites/model-connector.js';
export { type SampleCall, type ToolSourceContractOptions, toolSourceContract } from './suites/tool-source.js';
export { type OpenedTransport, type TransportContractOptions, transportContract } from './suites/transport.js';
