import type { AssistantMessage, ContentPart, UserMessage } from '@plugboard/kernel/contracts';
import type { InputPart, OutputPart } from './item.js';

/** Converts the content of a user message to item parts. */
export function inputParts(content: UserMessage['content']): readonly InputPart[] {
  return typeof content === 'string' ? [{ type: 'input_text', text: content }] : content.map(inputPart);
}

function inputPart(part: ContentPart): InputPart {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image_url':
      return { type: 'input_image', image_url: part.image_url.url, detail: part.image_url.detail ?? 'auto', file_id: null };
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio };
    case 'file':
      return { type: 'input_file', ...part.file };
    case 'video_url': // items have no videos
      return { type: 'input_file', file_url: part.video_url.url };
  }
}

/** Converts the content of an assistant message to item parts; empty if it only called tools. */
export function outputParts({ content, refusal, tool_calls, function_call }: AssistantMessage): readonly OutputPart[] {
  const parts: OutputPart[] = typeof content === 'string' ? [outputText(content)] : (content ?? []).map(outputPart);
  if (refusal !== undefined) parts.push({ type: 'refusal', refusal });
  return tool_calls || function_call ? parts.filter((part) => part.type === 'refusal' || part.text !== '') : parts;
}

function outputPart(part: Exclude<AssistantMessage['content'], string | null>[number]): OutputPart {
  return part.type === 'text' ? outputText(part.text) : { type: 'refusal', refusal: part.refusal };
}

function outputText(text: string): OutputPart {
  return { type: 'output_text', text, annotations: [] };
}
