/**
 * The plugin interface of Plugboard: define a plugin, contribute to extension points, and run a
 * server in a program.
 *
 * More is in subpaths: `@plugboard/kernel/contracts` (messages, events, sessions, commands, and
 * everything the extension points refer to) and `/injection` (class graphs with tsyringe).
 */
import 'reflect-metadata';

export { compose } from './compose.js';
export { type AuthProvider, AuthProviders, type AuthResult, type Credentials } from './contracts/callers/auth-provider.js';
export type { Principal } from './contracts/callers/principal.js';
export { type Transport, Transports } from './contracts/callers/transport.js';
export type { AgentEvent } from './contracts/events/event.js';
export type { Message } from './contracts/messages/message.js';
export {
  type ModelConnector,
  ModelConnectors,
  ModelError,
  type ModelEvent,
  type ModelRequest,
} from './contracts/model/model-connector.js';
export { AgentRuntimes } from './contracts/runtime/agent-runtime.js';
export { type Interceptor, Interceptors } from './contracts/runtime/interceptor.js';
export type { Turn } from './contracts/runtime/turn.js';
export { type SessionStore, SessionStores } from './contracts/store/session-store.js';
export { type InterceptedCall, type ToolInterceptor, ToolInterceptors } from './contracts/tools/tool-interceptor.js';
export {
  defineTool,
  type Tool,
  type ToolCall,
  type ToolOutput,
  type ToolSource,
  ToolSources,
} from './contracts/tools/tool-source.js';
export type { Clock, IdSource } from './host/base/ambient.js';
export { ConfigError, StartError } from './host/base/errors.js';
export type { HostView } from './host/base/status.js';
export { audit } from './host/log/audit.js';
export type { Logger } from './host/log/log.js';
export { createRedactor } from './host/log/redactor.js';
export { parseDate } from './host/options/date.js';
export { parseDuration } from './host/options/duration.js';
export type { Infer, JsonSchema } from './host/options/schema-types.js';
export { parseSize } from './host/options/size.js';
export {
  type Contribution,
  type Description,
  defineExtensionPoint,
  type ExtensionPoint,
  type Extensions,
} from './host/plugin/extension-point.js';
export {
  type CheckContext,
  ConfigFault,
  type ConfigProblem,
  type DefinedPlugin,
  definePlugin,
  type Lifecycle,
  type PluginContext,
} from './host/plugin/plugin.js';
export { type PluginState, type StateChange, StateFull, type StateStore } from './host/plugin/state.js';
export type { Server } from './host/server.js';
