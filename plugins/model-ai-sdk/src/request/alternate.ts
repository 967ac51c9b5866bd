import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';

/** Stands between results of tools and a message of the user. */
const ACKNOWLEDGED: LanguageModelV4Message = { role: 'assistant', content: [{ type: 'text', text: 'OK.' }] };

/** Makes roles alternate: joins neighbours, and answers results before the user goes on. */
export function alternating(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
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
