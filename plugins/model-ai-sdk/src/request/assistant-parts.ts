import type { LanguageModelV4Message } from '@ai-sdk/provider';
import { type AssistantMessage, parseJson, type ToolCallPart, textOf } from '@plugboard/kernel/contracts';
import { isObject, wellFormed } from '../json/json.js';
import { type AnswerPart, type MessageData, type PartOptions, readCallData, readMessageData } from './answer-data.js';
import type { CallIds } from './call-ids.js';

/** A part of an assistant message at a provider. */
type Part = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];
type CallPart = Extract<Part, { type: 'tool-call' }>;

/** The parts of an assistant message, as its provider sent them (AI-7). None if it says nothing. */
export function assistantParts(message: AssistantMessage, fingerprint: string, ids: CallIds): readonly Part[] {
  const text = [textOf(message.content), message.refusal ?? ''].join('');
  const calls = (message.tool_calls ?? []).map((call) => callPart(call, fingerprint, ids));
  const data = readMessageData(message.extra, fingerprint);
  const parts = data ? ownParts(data, text, calls) : foreignParts(text, calls);
  // Providers refuse an answer that only thinks.
  return parts.some(({ type }) => type !== 'reasoning') ? parts : [];
}

function foreignParts(text: string, calls: readonly CallPart[]): readonly Part[] {
  return [...textParts(text), ...calls];
}

function textParts(text: string, options?: PartOptions): readonly Part[] {
  const signed = withOptions(options);
  if (text.trim() === '' && options === undefined) return [];
  return [{ type: 'text', text: text.toWellFormed(), ...signed }];
}

/** Calls that an interceptor added, and text that it changed, follow the parts of the provider. */
function ownParts({ parts }: MessageData, text: string, calls: readonly CallPart[]): readonly Part[] {
  const isSameText = textLength(parts) === text.length;
  const left = new Map(calls.map((call) => [call.toolCallId, call]));
  const result: Part[] = [];
  let offset = 0;
  for (const part of parts) {
    if (part.type === 'reasoning') result.push({ type: 'reasoning', text: part.text, ...withOptions(part.options) });
    else if (part.type === 'text') {
      if (isSameText) result.push(...textParts(text.slice(offset, offset + part.length), part.options));
      offset += part.length;
    } else {
      const call = left.get(part.id);
      if (call) result.push(call);
      left.delete(part.id);
    }
  }
  if (isSameText) return [...result, ...left.values()];
  const firstCall = result.findIndex(({ type }) => type === 'tool-call');
  return result.toSpliced(firstCall < 0 ? result.length : firstCall, 0, ...textParts(text)).concat(...left.values());
}

function textLength(parts: readonly AnswerPart[]): number {
  return parts.reduce((sum, part) => sum + (part.type === 'text' ? part.length : 0), 0);
}

function callPart(call: ToolCallPart, fingerprint: string, ids: CallIds): CallPart {
  const own = readCallData(call.extra, fingerprint);
  const name = call.type === 'function' ? call.function.name : call.custom.name;
  const input = call.type === 'function' ? argumentsOf(call.function.arguments) : { input: call.custom.input.toWellFormed() };
  const { id: toolCallId, name: toolName } = ids.add(call.id, name, own?.id);
  return { type: 'tool-call', toolCallId, toolName, input, ...withOptions(own?.options) };
}

function argumentsOf(text: string): unknown {
  try {
    const value = wellFormed(parseJson(text));
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function withOptions(options: PartOptions | undefined): { readonly providerOptions?: PartOptions } {
  return options === undefined ? {} : { providerOptions: options };
}
