import type { FunctionCallPart } from '@plugboard/kernel/contracts';
import {
  invalidValue,
  type JsonObject,
  optionalString,
  requireField,
  requireObject,
  requireString,
} from '@plugboard/openai-protocol';
import { customArguments } from '../tools/custom-input.js';
import { modelName } from '../tools/tool-name.js';
import { toolOutput } from './input-parts.js';

/** The name of Codex' former shell tool at the model, in conversations that have calls of it. */
const LOCAL_SHELL = 'local_shell';

/** The types of items that are calls of the caller's tools, and of their results. */
export const CALLS: ReadonlySet<string> = new Set(['function_call', 'custom_tool_call', 'local_shell_call']);
export const RESULTS: ReadonlySet<string> = new Set([
  'function_call_output',
  'custom_tool_call_output',
  'local_shell_call_output',
]);

/** A call of one of the caller's tools, as the model made it. @throws ProtocolError 400 */
export function callOf(item: JsonObject, param: string): FunctionCallPart {
  const id = idAt(item, param);
  switch (item.type) {
    case 'custom_tool_call': {
      const input = requireString(requireField(item, 'input', param), `${param}.input`);
      return { id, type: 'function', function: { name: nameAt(item, param), arguments: customArguments(input) } };
    }
    case 'local_shell_call': {
      const action = requireObject(requireField(item, 'action', param), `${param}.action`);
      return { id, type: 'function', function: { name: LOCAL_SHELL, arguments: JSON.stringify(action) } };
    }
    default: {
      const text = requireString(requireField(item, 'arguments', param), `${param}.arguments`);
      return { id, type: 'function', function: { name: nameAt(item, param), arguments: text } };
    }
  }
}

/** The result of a call. @param hasImages whether it may have images. @throws ProtocolError 400 */
export function resultOf(item: JsonObject, param: string, hasImages: boolean) {
  return { id: idAt(item, param), ...toolOutput(requireField(item, 'output', param), `${param}.output`, hasImages) };
}

/** The id of the call that an item is the result of; empty for any other item. */
export function answeredBy(item: unknown): readonly unknown[] {
  if (typeof item !== 'object' || item === null) return [];
  const { type, call_id: answered } = item as JsonObject;
  return typeof type === 'string' && RESULTS.has(type) ? [answered] : [];
}

function nameAt(item: JsonObject, param: string): string {
  const name = requireString(requireField(item, 'name', param), `${param}.name`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw invalidValue(`${param}.name`, "expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'");
  }
  return modelName(optionalString(item.namespace, `${param}.namespace`), name);
}

function idAt(item: JsonObject, param: string): string {
  // A call of the local shell may have an `id` only, and its output then repeats that.
  const field = item.call_id == null && String(item.type).startsWith('local_shell') ? 'id' : 'call_id';
  const id = requireString(requireField(item, field, param), `${param}.${field}`);
  if (id === '') throw invalidValue(`${param}.${field}`, 'it is empty');
  return id;
}
