import type { Target, ToolDeclaration } from '@plugboard/kernel/contracts';
import { unsupportedValue } from '@plugboard/openai-protocol';
import type { CompletionRequest, RequestTool, ToolChoice } from './request.js';

/** The client tools; none if the target ignores them. @throws ProtocolError 400 */
export function clientToolsOf(
  { tools = [], tool_choice, function_call }: CompletionRequest,
  target: Target,
): readonly ToolDeclaration[] {
  if (typeof function_call === 'object') {
    throw unsupportedValue(
      'function_call',
      "Unsupported value: 'function_call' cannot force a function here. Use 'tools' and 'tool_choice'.",
    );
  }
  const passedOn = target.clientTools === 'passthrough' ? tools.map(declarationOf) : [];
  if (isForced(tool_choice) && (passedOn.length === 0 || !target.forwardsParam('tool_choice'))) throw cannotForce(target);
  return passedOn;
}

/** One object, so that equal lists of tools are recognized. */
const NO_PARAMETERS = Object.freeze({ type: 'object', properties: Object.freeze({}) });

function declarationOf(tool: RequestTool, i: number): ToolDeclaration {
  if (tool.type === 'custom') {
    throw unsupportedValue(
      `tools[${i}].type`,
      "Unsupported value: 'custom' tools are not supported with this model. Use 'function'.",
    );
  }
  const { name, description, parameters, strict } = tool.function;
  return {
    name,
    description: description ?? '',
    inputSchema: parameters ?? NO_PARAMETERS,
    ...(strict == null ? {} : { strict }),
  };
}

function isForced(choice: ToolChoice | undefined): boolean {
  if (choice === undefined || choice === 'none' || choice === 'auto') return false;
  return choice === 'required' || choice.type !== 'allowed_tools' || choice.allowed_tools.mode === 'required';
}

function cannotForce(target: Target) {
  return unsupportedValue(
    'tool_choice',
    target.clientTools !== 'passthrough'
      ? "Unsupported value: 'tool_choice' cannot force a tool call: this agent runs its own tools and ignores those of a request. Only 'auto' and 'none' are supported."
      : "Unsupported value: 'tool_choice' cannot force a tool call: the request has no tools, or the model connection does not support 'tool_choice'.",
  );
}
