import type { InputItem } from './request.js';

/** Prefixes of the ids of items, by type. */
const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  mcp_call: 'mcp',
  mcp_approval_response: 'mcpar',
  reasoning: 'rs',
  compaction: 'cmp',
};

/**
 * The items of a request as `input_items` lists them: each with a type and an id, and messages with
 * parts.
 *
 * @param id of the response.
 */
export function listedItems(items: readonly InputItem[], id: string): readonly InputItem[] {
  const suffix = id.slice(id.indexOf('_') + 1);
  return items.map((item, index) => {
    const type = typeof item.type === 'string' ? item.type : 'message';
    const listed = { id: `${PREFIXES[type] ?? 'item'}_${suffix}_in${index}`, ...item, type };
    return type === 'message' ? { status: 'completed', ...listed, content: partsOf(item) } : listed;
  });
}

function partsOf({ role, content }: InputItem): unknown {
  if (typeof content !== 'string') return content;
  return role === 'assistant'
    ? [{ type: 'output_text', text: content, annotations: [], logprobs: [] }]
    : [{ type: 'input_text', text: content }];
}
