/**
 * Messages, events, sessions, and every type that the extension points refer to. `@plugboard/kernel` exports what a plugin needs
 * first; this module exports the rest.
 */
export type { Timer } from '../host/base/ambient.js';
export { Budget, type BudgetOptions, type BudgetReport, heapLimit } from '../host/base/budget.js';
export type { Fault, HostErrorCode } from '../host/base/errors.js';
export { nearest, suggestion } from '../host/base/nearest.js';
export type { ConfigPath, PluginIdentity, Position, Problem } from '../host/base/problem.js';
export type { StopOptions } from '../host/lifecycle/lifecycle.js';
export type { EntryReport, EntryStatus, HostPhase } from '../host/lifecycle/status.js';
export type { LogSink } from '../host/log/log.js';
export type { RedactorOptions } from '../host/log/redactor.js';
export type { SchemaType } from '../host/options/schema-types.js';
export type { Environment } from '../host/options/variables.js';
export { Budgets } from '../host/plugin/budgets.js';
export type { Discipline, MemberType, ShapeOf } from '../host/plugin/extension-point.js';
export { API_VERSION, PLUGIN_BRAND, type Reconfiguration } from '../host/plugin/plugin.js';
export type { ConfigChange, ConfigImage, EntryImage } from '../host/reload/changes.js';
export type { ContributionDescription, PluginInfo, ReloadResult } from '../host/server.js';
export type {
  AgentRuntime,
  AnswerRecorder,
  ClaimResult,
  IdempotencyClaim,
  SessionRequest,
  TargetInfo,
  TargetResolution,
  TurnIdempotency,
  TurnRequest,
} from './agent-runtime.js';
export { CONVERSATION_PREFIX, conversationId, isConversationId } from './conversation-id.js';
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
} from './conversation-store.js';
export type {
  Conversation,
  ConversationDocument,
  Conversations,
  ConversationTurns,
  ForkRequest,
  NewConversation,
} from './conversations.js';
export type { DocumentStore, StoredDocument } from './document-store.js';
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
} from './event.js';
export { withOwnExtras, withoutExtras } from './extra.js';
export { failed, failureOf } from './failure.js';
export type { IdempotencyKey, IdempotencyRecord, IdempotencyStore } from './idempotency-store.js';
export { LongText } from './long-text.js';
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
} from './message.js';
export type { ModelEnd, ModelReasoning, ModelText, ModelToolCall, ModelUsage, ToolDeclaration } from './model-connector.js';
export { parseJson } from './parse-json.js';
export { type PeekResult, peek } from './peek.js';
export type { PendingToolCalls, PendingToolCallsOwner } from './pending-tool-calls.js';
export { DEFAULT_PROJECT, DEFAULT_SCOPES, missingScope, OPEN, type PrincipalLimits, SCOPES, type Scope } from './principal.js';
export { isBlankKey, type SessionKeyProblem, sessionKeyProblem } from './session-key.js';
export type { BusyMode, Target } from './target.js';
export { isToolImagesMessage, toolImagesMessage } from './tool-images.js';
export type { ToolDefinition, ToolPart, ToolResultParts } from './tool-source.js';
export { Transcript } from './transcript.js';
export { addUsage, NO_USAGE, type Usage } from './usage.js';
