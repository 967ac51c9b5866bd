/**
 * Messages, events, sessions, and every type that the extension points refer to.
 * `@plugboard/kernel` exports what a plugin needs first; this module exports the rest.
 */

export { recognizeAcrossCopies } from '../host/base/across-copies.js';
export type { Timer } from '../host/base/ambient.js';
export { Budget, heapLimit } from '../host/base/budget.js';
export { nearest, suggestion } from '../host/base/nearest.js';
export { compileSchema, type SchemaMistake, type ValueValidator } from '../host/options/value-schema.js';
export { Budgets } from '../host/plugin/budgets.js';
export type { Exclusive } from '../host/plugin/exclusive.js';
export type { Reconfiguration } from '../host/plugin/plugin.js';
export { AddressPolicy } from './callers/address-policy.js';
export { type Channel, type ChannelStatus, Channels } from './callers/channel.js';
export { HostPolicy } from './callers/host-policy.js';
export {
  callerId,
  DEFAULT_PROJECT,
  DEFAULT_SCOPES,
  missingScope,
  OPEN,
  type PrincipalLimits,
  SCOPES,
  type Scope,
} from './callers/principal.js';
export {
  type CommandAction,
  type CommandArguments,
  CommandError,
  type CommandFamily,
  Commands,
  type CommandTerminal,
  UsageError,
} from './commands/command.js';
export {
  type AgentEvents,
  type Failure,
  type FailureCode,
  isTerminal,
  type TurnApproval,
  TurnError,
  type TurnFailed,
  type TurnFinished,
  type TurnText,
  type TurnToolCall,
  type TurnToolCallDelta,
  type TurnToolResult,
} from './events/event.js';
export { failed, failureOf } from './events/failure.js';
export { Transcript } from './events/transcript.js';
export { LongText } from './messages/long-text.js';
export {
  type AssistantMessage,
  type AudioPart,
  type ContentPart,
  type Extra,
  type FilePart,
  type FunctionCallPart,
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
export { openToolCalls } from './messages/open-tool-calls.js';
export { parseJson } from './messages/parse-json.js';
export { matchLine, SHAPE_LIMITS } from './messages/shape-limits.js';
export { withSummary } from './messages/with-summary.js';
export type { ModelEnd, ModelText, ModelToolCall, ModelToolCallDelta, ToolDeclaration } from './model/model-connector.js';
export { type ModelCall, type ModelInterceptor, ModelInterceptors } from './model/model-interceptor.js';
export { SAMPLING_PARAMETERS } from './model/sampling-parameters.js';
export { addUsage, NO_USAGE, type Usage } from './model/usage.js';
export { Account } from './runtime/account.js';
export type { AgentCard, AgentCards, ToolRun } from './runtime/agent-cards.js';
export type {
  AgentRuntime,
  AnswerRecorder,
  ClaimResult,
  IdempotencyClaim,
  RequestCount,
  SessionRequest,
  TargetInfo,
  TargetResolution,
  TurnEvents,
  TurnIdempotency,
  TurnRequest,
} from './runtime/agent-runtime.js';
export type { Approval, ApprovalDecision, Approvals } from './runtime/approvals.js';
export type {
  Conversation,
  Conversations,
  ConversationTurns,
  NewConversation,
  WatchedTurn,
} from './runtime/conversations.js';
export type { BusyMode, Target } from './runtime/target.js';
export type { TurnRecord } from './runtime/turn-record.js';
export type { ApprovalPage, ApprovalStore, StoredApproval } from './store/approval-store.js';
export { CONVERSATION_PREFIX, conversationId, isConversationId } from './store/conversation-id.js';
export {
  type ApprovalChange,
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
export { ExpiryClock } from './store/expiry-clock.js';
export type { IdempotencyKey, IdempotencyRecord, IdempotencyStore } from './store/idempotency-store.js';
export type { PendingToolCalls, PendingToolCallsOwner } from './store/pending-tool-calls.js';
export { isBlankKey, sessionKeyProblem } from './store/session-key.js';
export { sessionTitle } from './store/session-title.js';
export { LeaseEnded, type SessionLease, type SharedStore } from './store/shared-store.js';
export { isToolImagesMessage, toolImagesMessage } from './tools/tool-images.js';
export type { ToolPart, ToolResultParts } from './tools/tool-source.js';
export { withoutCombination } from './tools/without-combination.js';
