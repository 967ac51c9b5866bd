import type { AssistantMessage } from '@plugboard/kernel/contracts';

type OutputPart =
  | { readonly type: 'output_text'; readonly text: string; readonly annotations: readonly never[] }
  | { readonly type: 'refusal'; readonly refusal: string };

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
