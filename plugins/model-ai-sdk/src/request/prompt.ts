import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { Message } from '@plugboard/kernel';
import { type AssistantMessage, type ToolMessage, textOf, type UserMessage } from '@plugboard/kernel/contracts';
import type { ProviderKind } from '../provider/provider-kind.js';
import { alternating } from './alternate.js';
import { assistantParts } from './assistant-parts.js';
import { CallIds } from './call-ids.js';
import { type MediaSource, type UserPart, userPart } from './media.js';

/** Text in place of a message that providers would refuse to be without. */
const EMPTY = '(empty message)';
const BEGINNING = '(The beginning of the conversation was left out.)';
const CONTINUE = 'Continue.';
const NO_RESULT = 'Error: there is no result for this call.';

type AssistantPrompt = Extract<LanguageModelV4Message, { role: 'assistant' }>;

/**
 * Converts a conversation to the prompt of a provider. The providers refuse what chat completions
 * allow: system messages after the beginning, texts without a visible character, a conversation
 * that begins with the assistant or ends with it, calls without results.
 *
 * @param fingerprint of the model: the data that it attached to its answers goes back to it.
 * @param mayCall whether the model may call tools. If not, a provider may refuse earlier calls:
 *   then only their results are sent, as text.
 */
export async function promptOf(
  messages: readonly Message[],
  fingerprint: string,
  media: MediaSource,
  kind: Pick<ProviderKind, 'callIds' | 'namesBeginWithLetter' | 'alternates' | 'needsTools'> = {},
  mayCall = true,
): Promise<LanguageModelV4Prompt> {
  const ids = new CallIds(kind);
  const answerOf = mayCall || !kind.needsTools ? (message: AssistantMessage) => message : withoutCalls;
  const prompt: LanguageModelV4Prompt = [];
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant');
  for (const [index, message] of messages.entries()) {
    if (message.role === 'system') addSystem(prompt, textOf(message.content));
    else if (message.role === 'user') addUser(prompt, await userParts(message, index > lastAnswer, media));
    else if (message.role === 'assistant') addAssistant(prompt, answerOf(message), fingerprint, ids);
    else if (message.role === 'tool') addResult(prompt, message, ids);
    else addText(prompt, `${message.name}: ${message.content ?? ''}`);
  }
  closeOpenCalls(prompt);
  const first = prompt.findIndex(({ role }) => role !== 'system');
  if (first < 0) addText(prompt, EMPTY);
  else if (prompt[first]?.role === 'assistant') prompt.splice(first, 0, { role: 'user', content: textParts(BEGINNING) });
  if (prompt.at(-1)?.role === 'assistant') addText(prompt, CONTINUE);
  return kind.alternates ? alternating(prompt) : prompt;
}

/** An answer's text alone: its thoughts belong to its calls. */
function withoutCalls({ tool_calls, extra, ...message }: AssistantMessage): AssistantMessage {
  return message;
}

/** System messages come first. A later one stays at its place, as a message of the user. */
function addSystem(prompt: LanguageModelV4Prompt, text: string): void {
  if (isBlank(text)) return;
  if (prompt.every(({ role }) => role === 'system')) prompt.push({ role: 'system', content: text.toWellFormed() });
  else addText(prompt, `System message: ${text}`);
}

function addText(prompt: LanguageModelV4Prompt, text: string): void {
  addUser(prompt, textParts(text));
}

function addUser(prompt: LanguageModelV4Prompt, content: UserPart[]): void {
  closeOpenCalls(prompt);
  prompt.push({ role: 'user', content });
}

function textParts(text: string): UserPart[] {
  return [{ type: 'text', text: text.toWellFormed() }];
}

async function userParts({ content }: UserMessage, isNew: boolean, media: MediaSource): Promise<UserPart[]> {
  const parts: UserPart[] = [];
  for (const part of typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content) {
    const converted = await userPart(part, isNew, media);
    if (converted.type !== 'text' || !isBlank(converted.text)) parts.push(converted);
  }
  return parts.length > 0 ? parts : textParts(EMPTY);
}

/** Answers that follow each other become one: a call must follow a message of the user. */
function addAssistant(prompt: LanguageModelV4Prompt, message: AssistantMessage, fingerprint: string, ids: CallIds): void {
  const parts = assistantParts(message, fingerprint, ids);
  if (parts.length === 0) return;
  const last = prompt.at(-1);
  if (last?.role === 'assistant' && !hasCalls(last)) last.content.push(...parts);
  else {
    closeOpenCalls(prompt);
    prompt.push({ role: 'assistant', content: [...parts] });
  }
}

/** The results of the calls of one answer form one message. */
function addResult(prompt: LanguageModelV4Prompt, { tool_call_id, content }: ToolMessage, ids: CallIds): void {
  const call = ids.get(tool_call_id);
  const text = textOf(content).toWellFormed();
  const open = call && openCalls(prompt).find(({ toolCallId }) => toolCallId === call.id);
  if (!open) addText(prompt, `Result of a tool: ${text}`);
  else resultsOf(prompt).push({ ...open, output: { type: 'text', value: isBlank(text) ? '(no output)' : text } });
}

type ToolMessageContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content'];

/** The message with the results of the last answer's calls. */
function resultsOf(prompt: LanguageModelV4Prompt): ToolMessageContent {
  const last = prompt.at(-1);
  if (last?.role === 'tool') return last.content;
  const content: ToolMessageContent = [];
  prompt.push({ role: 'tool', content });
  return content;
}

/** The calls of the last answer that have no result, if only results follow it. */
function openCalls(prompt: LanguageModelV4Prompt): readonly Omit<LanguageModelV4ToolResultPart, 'output'>[] {
  const answered = new Set<string>();
  let last = prompt.at(-1);
  if (last?.role === 'tool') {
    for (const part of last.content) if (part.type === 'tool-result') answered.add(part.toolCallId);
    last = prompt.at(-2);
  }
  if (last?.role !== 'assistant') return [];
  return last.content.flatMap((part) =>
    part.type === 'tool-call' && !answered.has(part.toolCallId)
      ? [{ type: 'tool-result' as const, toolCallId: part.toolCallId, toolName: part.toolName }]
      : [],
  );
}

function closeOpenCalls(prompt: LanguageModelV4Prompt): void {
  const open = openCalls(prompt);
  if (open.length === 0) return;
  resultsOf(prompt).push(...open.map((call) => ({ ...call, output: { type: 'text' as const, value: NO_RESULT } })));
}

function hasCalls({ content }: AssistantPrompt): boolean {
  return content.some(({ type }) => type === 'tool-call');
}

export function isBlank(text: string): boolean {
  return text.trim() === '';
}
