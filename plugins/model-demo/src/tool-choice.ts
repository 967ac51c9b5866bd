import type { ToolDeclaration } from '@plugboard/kernel/contracts';

/** Which tools the model may call. */
interface ToolChoice {
  readonly permitted: readonly ToolDeclaration[];
  /** Whether the answer must be a call. */
  readonly mustCall: boolean;
}

/**
 * @param choice the protocol's `tool_choice`: `none`, `auto`, `required`, one tool, or a list of
 * allowed tools. Any other value means `auto`.
 */
export function readToolChoice(choice: unknown, tools: readonly ToolDeclaration[]): ToolChoice {
  if (choice === 'none') return { permitted: [], mustCall: false };
  if (choice === 'required') return { permitted: tools, mustCall: true };
  if (typeof choice !== 'object' || choice === null) return { permitted: tools, mustCall: false };
  if ('function' in choice) return { permitted: tools.filter((tool) => tool.name === nameIn(choice.function)), mustCall: true };
  if ('allowed_tools' in choice && typeof choice.allowed_tools === 'object' && choice.allowed_tools !== null) {
    const { mode, tools: allowed } = choice.allowed_tools as { readonly mode?: unknown; readonly tools?: unknown };
    const names = Array.isArray(allowed) ? allowed.map((tool) => nameIn(tool?.function)) : [];
    return { permitted: tools.filter((tool) => names.includes(tool.name)), mustCall: mode === 'required' };
  }
  return { permitted: tools, mustCall: false };
}

function nameIn(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'name' in value ? value.name : undefined;
}
