/**
 * Messages, events, sessions, and every type that the extension points refer to.
 * `@plugboard/kernel` exports what a plugin needs first; this module exports the rest.
 */

export { type ActiveMember, ActiveSet } from '../host/base/active-set.js';
export type { Timer } from '../host/base/ambient.js';
export { Budget, type BudgetOptions, type BudgetReport, heapLimit } from '../host/base/budget.js';
export type { Fault, HostErrorCode } from '../host/base/errors.js';
export { nearest, suggestion } from '../host/base/nearest.js';
export type { ConfigPath, PluginIdentity, Position, Problem } from '../host/base/problem.js';
export type { EntryReport, EntryStatus, HostPhase } from '../host/base/status.js';
export type { StopOptions } from '../host/lifecycle/lifecycle.js';
export type { LogSink } from '../host/log/log.js';
export type { RedactorOptions } from '../host/log/redactor.js';
export type { SchemaType } from '../host/options/schema-types.js';
export type { Environment } from '../host/options/variables.js';
export { Budgets } from '../host/plugin/budgets.js';
export type { Discipline, MemberType, ShapeOf } from '../host/plugin/extension-point.js';
export { API_VERSION, PLUGIN_BRAND, type Reconfiguration } from '../host/plugin/plugin.js';
export type { ConfigChange, ConfigImage, EntryImage } from '../host/reload/changes.js';
export type { ContributionDescription, PluginInfo, ReloadResult } from '../host/server.js';
export {
  DEFAULT_PROJECT,
  DEFAULT_SCOPES,
  missingScope,
  OPEN,
  type PrincipalLimits,
  SCOPES,
  type Scope,
} from './callers/principal.js';
export {
  type Command,
  type CommandAction,
  type CommandArguments,
  CommandError,
  type CommandFamily,
  type CommandOption,
  Commands,
  type CommandTerminal,
  UsageError,
} from './commands/command.js';
export {
  type AgentEvents,
  type Failure,
  type FailureCode,
  isTerminal,
  TurnError,
  type TurnExtra,
  type TurnFailed,
  type TurnFinished,
  type TurnReasoning,
  type TurnStarted,
  type TurnStep,
  type TurnText,
  type TurnToolCall,
  type TurnToolProgress,
  type TurnToolResult,
  type TurnUsage,
} from './events/event.js';
export { failed, failureOf } from './events/failure.js';
export { type PeekResult, peek } from './events/peek.js';
export { Transcript } from './events/transcript.js';
export { withOwnExtras, withoutExtras } from './messages/extra.js';
export { LongText } from './messages/long-text.js';
export {
  type AssistantMessage,
  type AudioPart,
  type ContentPart,
  type CustomCallPart,
  type Extra,
  type FilePart,
  type FunctionCallPart,
  type FunctionMessage,
  type ImagePart,
  type RefusalPart,
  type SystemMessage,
  type TextPart,
  type ToolCallPart,
  type ToolMessage,
  textOf,
  type UserMessage,
  type VideoPart,
} from './messages/message.js';
export { knownMessageJson, messageJson, messageSize } from './messages/message-json.js';
export { parseJson } from './messages/parse-json.js';
export type { ModelEnd, ModelReasoning, ModelText, ModelToolCall, ModelUsage, ToolDeclaration } from './model/model-connector.js';
export { SAMPLING_PARAMETERS } from './model/sampling-parameters.js';
export { addUsage, NO_USAGE, type Usage } from './model/usage.js';
export type {
  AgentRuntime,
  AnswerRecorder,
  ClaimResult,
  IdempotencyClaim,
  ProjectLimits,
  SessionRequest,
  TargetInfo,
  TargetResolution,
  TurnEvents,
  TurnIdempotency,
  TurnRequest,
} from './runtime/agent-runtime.js';
export type {
  Conversation,
  ConversationDocument,
  Conversations,
  ConversationTurns,
  ForkRequest,
  NewConversation,
} from './runtime/conversations.js';
export type { BusyMode, Target } from './runtime/target.js';
export { CONVERSATION_PREFIX, conversationId, isConversationId } from './store/conversation-id.js';
export {
  type ConversationStore,
  type InterruptedTurn,
  type Metadata,
  type NewSession,
  ProjectQuotaExceeded,
  SessionExists,
  type SessionId,
  type SessionInfo,
  type SessionPage,
  type StoredSession,
  type StoredTurn,
  type Summary,
  type TurnBegin,
  type TurnCommit,
  type TurnPage,
  VersionConflict,
} from './store/conversation-store.js';
export type { DocumentStore, StoredDocument } from './store/document-store.js';
export type { IdempotencyKey, IdempotencyRecord, IdempotencyStore } from './store/idempotency-store.js';
export type { PendingToolCalls, PendingToolCallsOwner } from './store/pending-tool-calls.js';
export { isBlankKey, type SessionKeyProblem, sessionKeyProblem } from './store/session-key.js';
export { isToolImagesMessage, toolImagesMessage } from './tools/tool-images.js';
export type { ToolDefinition, ToolPart, ToolResultParts } from './tools/tool-source.js';
