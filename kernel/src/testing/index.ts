import 'reflect-metadata';

export { CapturedLog, type LogLine } from './capture-log.js';
export { ManualClock } from './clock.js';
export { type TestContext, type TestContextOptions, testContext } from './context.js';
export type { ContractCase } from './contract.js';
export { SequentialIds } from './ids.js';
export * from './model-connector-contract.js';
export * from './model-server.js';
export { type CheckedConfig, checkOptions } from './options.js';
export { type PluginContractOptions, pluginContract } from './plugin-contract.js';
export { type StartedServer, type StartServerOptions, startServer } from './server.js';
export * from './session-store-contract.js';
export { settingsTable } from './settings-table.js';
export { type TestToolCall, testToolCall } from './tool-call.js';
export * from './tool-source-contract.js';
