import type { Target, ToolDeclaration } from '@plugboard/kernel/contracts';
import { unsupportedValue } from '@plugboard/openai-protocol';
import type { RequestTool, ResponseRequest, ToolChoice } from './request.js';

/**
 * The tools that the caller brought and runs itself. Only an agent whose configuration says
 * `clientTools: ignore` does without them. `allowed_tools` leaves out the others, so that no model
 * can call them.
 *
 * @throws ProtocolError 400 if the request forces a call that cannot come.
 */
export function clientToolsOf({ tools = [], tool_choice }: ResponseRequest, target: Target): readonly ToolDeclaration[] {
  const allowed =
    typeof tool_choice === 'object' && tool_choice.type === 'allowed_tools' ? namesOf(tool_choice.tools) : undefined;
  const passed = target.clientTools === 'ignore' ? [] : tools.filter(({ name }) => allowed?.has(name) ?? true).map(declarationOf);
  if (isForced(tool_choice) && (passed.length === 0 || !target.forwardsParam('tool_choice'))) throw cannotForce(target);
  return passed;
}

/** A tool choice in the words of chat completions, which model connections speak. */
export function chatToolChoice(choice: ToolChoice): unknown {
  if (typeof choice === 'string') return choice;
  return choice.type === 'allowed_tools' ? choice.mode : { type: 'function', function: { name: choice.name } };
}

function declarationOf({ name, description, parameters, strict }: RequestTool): ToolDeclaration {
  return {
    name,
    description: description ?? '',
    inputSchema: parameters ?? { type: 'object', properties: {} },
    ...(strict == null ? {} : { strict }),
  };
}

function namesOf(tools: readonly { readonly name: string }[]): ReadonlySet<string> {
  return new Set(tools.map(({ name }) => name));
}

function isForced(choice: ToolChoice | undefined): boolean {
  if (choice === undefined || typeof choice === 'string') return choice === 'required';
  return choice.type === 'function' || choice.mode === 'required';
}

function cannotForce(target: Target) {
  return unsupportedValue(
    'tool_choice',
    target.clientTools === 'ignore'
      ? "Unsupported value: 'tool_choice' cannot force a tool call: this agent runs its own tools and ignores those of a request. Only 'auto' and 'none' are supported."
      : "Unsupported value: 'tool_choice' cannot force a tool call: the request brings no such tools, or the model connection does not take 'tool_choice'.",
  );
}
