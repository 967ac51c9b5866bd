import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { Message } from '@plugboard/kernel';
import { type AssistantMessage, type ToolMessage, textOf, type UserMessage } from '@plugboard/kernel/contracts';
import type { ProviderKind } from '../provider/provider-kind.js';
import { assistantParts } from './assistant-parts.js';
import { CallIds } from './call-ids.js';
import { type MediaSource, type UserPart, userPart, withFetchLimit } from './media.js';

/** Text in place of a message that providers would refuse to be without. */
const EMPTY = '(empty message)';
const BEGINNING = '(The beginning of the conversation was left out.)';
const CONTINUE = 'Continue.';
const NO_RESULT = 'Error: there is no result for this call.';

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
  source: MediaSource,
  kind: Pick<ProviderKind, 'callIds' | 'namesBeginWithLetter' | 'alternates' | 'needsTools'> = {},
  mayCall = true,
): Promise<LanguageModelV4Prompt> {
  const media = withFetchLimit(source, messages);
  const ids = new CallIds(kind);
  const answerOf = mayCall || !kind.needsTools ? (message: AssistantMessage) => message : withoutCalls;
  const prompt = new PromptBuilder(fingerprint, ids);
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant');
  for (const [index, message] of messages.entries()) {
    if (message.role === 'system') prompt.addSystem(textOf(message.content));
    else if (message.role === 'user') prompt.addUser(await userParts(message, index > lastAnswer, media));
    else if (message.role === 'assistant') prompt.addAssistant(answerOf(message));
    else if (message.role === 'tool') prompt.addResult(message);
    else prompt.addText(`${message.name}: ${message.content ?? ''}`);
  }
  const whole = prompt.end();
  return kind.alternates ? alternating(whole) : whole;
}

/** An answer's text alone: its thoughts belong to its calls. */
function withoutCalls({ tool_calls, extra, ...message }: AssistantMessage): AssistantMessage {
  return message;
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

type ToolMessageContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content'];

/** Joins the messages of a conversation to a prompt, in time proportional to them (S-64). */
class PromptBuilder {
  readonly #prompt: LanguageModelV4Prompt = [];
  readonly #fingerprint: string;
  readonly #ids: CallIds;
  /** The calls of the last answer without a result, by their ids, if only results follow it. */
  readonly #open = new Map<string, Omit<LanguageModelV4ToolResultPart, 'output'>>();

  constructor(fingerprint: string, ids: CallIds) {
    this.#fingerprint = fingerprint;
    this.#ids = ids;
  }

  /** System messages come first. A later one stays at its place, as a message of the user. */
  addSystem(text: string): void {
    if (isBlank(text)) return;
    if ((this.#prompt.at(-1)?.role ?? 'system') === 'system') this.#prompt.push({ role: 'system', content: text.toWellFormed() });
    else this.addText(`System message: ${text}`);
  }

  addText(text: string): void {
    this.addUser(textParts(text));
  }

  addUser(content: UserPart[]): void {
    this.#closeOpenCalls();
    this.#prompt.push({ role: 'user', content });
  }

  /** Answers that follow each other become one: a call must follow a message of the user. */
  addAssistant(message: AssistantMessage): void {
    const parts = assistantParts(message, this.#fingerprint, this.#ids);
    if (parts.length === 0) return;
    const last = this.#prompt.at(-1);
    if (last?.role === 'assistant' && this.#open.size === 0) for (const part of parts) last.content.push(part);
    else {
      this.#closeOpenCalls();
      this.#prompt.push({ role: 'assistant', content: [...parts] });
    }
    for (const part of parts) {
      if (part.type !== 'tool-call') continue;
      const { toolCallId, toolName } = part;
      this.#open.set(toolCallId, { type: 'tool-result', toolCallId, toolName });
    }
  }

  /** The results of the calls of one answer form one message. */
  addResult({ tool_call_id, content }: ToolMessage): void {
    const call = this.#ids.get(tool_call_id);
    const text = textOf(content).toWellFormed();
    const open = call && this.#open.get(call.id);
    if (!open) {
      this.addText(`Result of a tool: ${text}`);
      return;
    }
    this.#open.delete(open.toolCallId);
    this.#results().push({ ...open, output: { type: 'text', value: isBlank(text) ? '(no output)' : text } });
  }

  end(): LanguageModelV4Prompt {
    this.#closeOpenCalls();
    const prompt = this.#prompt;
    const first = prompt.findIndex(({ role }) => role !== 'system');
    if (first < 0) this.addText(EMPTY);
    else if (prompt[first]?.role === 'assistant') prompt.splice(first, 0, { role: 'user', content: textParts(BEGINNING) });
    if (prompt.at(-1)?.role === 'assistant') this.addText(CONTINUE);
    return prompt;
  }

  #closeOpenCalls(): void {
    if (this.#open.size === 0) return;
    const results = this.#results();
    for (const call of this.#open.values()) results.push({ ...call, output: { type: 'text', value: NO_RESULT } });
    this.#open.clear();
  }

  /** The message with the results of the last answer's calls. */
  #results(): ToolMessageContent {
    const last = this.#prompt.at(-1);
    if (last?.role === 'tool') return last.content;
    const content: ToolMessageContent = [];
    this.#prompt.push({ role: 'tool', content });
    return content;
  }
}

export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Stands between results of tools and a message of the user. */
const ACKNOWLEDGED: LanguageModelV4Message = { role: 'assistant', content: [{ type: 'text', text: 'OK.' }] };

/** Makes roles alternate: joins neighbours, and answers results before the user goes on. */
function alternating(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const result: LanguageModelV4Prompt = [];
  for (const message of prompt) {
    const last = result.at(-1);
    if (last?.role === 'tool' && message.role === 'user') result.push(ACKNOWLEDGED);
    if (last?.role === 'system' && message.role === 'system') last.content += `\n\n${message.content}`;
    else if (last?.role === 'user' && message.role === 'user') for (const part of message.content) last.content.push(part);
    else if (message.role === 'system') result.push({ ...message });
    else result.push(message.role === 'user' ? { ...message, content: [...message.content] } : message);
  }
  return result;
}
