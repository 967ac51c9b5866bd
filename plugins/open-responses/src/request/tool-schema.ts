import { RequestValidator, schema, schemaErrorToProtocol } from '@plugboard/openai-protocol';
import type { RequestTool } from './request.js';

const { anyObject, flag, maybe, name, object, shape, tagged, text, word } = schema;

/** Tools of one request, and of one list. Coding agents with several MCP servers have hundreds. */
export const MAX_TOOLS = 512;

const SHAPES = {
  function: shape({ name, description: maybe(text), parameters: maybe(anyObject), strict: maybe(flag) }, ['name']),
  custom: shape({ name, description: maybe(text), format: maybe(anyObject) }, ['name']),
};

/** The schema of a list of tools. Those of other types may have any fields. */
export const toolsSchema = listOf({
  ...SHAPES,
  namespace: shape({ name, description: maybe(text), tools: listOf(SHAPES) }, ['name', 'tools']),
});

function listOf(shapes: Parameters<typeof tagged>[1]): schema.RequestSchema {
  const known = word(...Object.keys(shapes));
  return {
    title: 'an array of objects',
    type: 'array',
    maxItems: MAX_TOOLS,
    items: {
      ...object({ type: text }, ['type']),
      if: { type: 'object', properties: { type: known } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, never awaited
      then: tagged('type', shapes),
    },
  };
}

const validator = new RequestValidator<{ readonly tools: readonly RequestTool[] }>(object({ tools: toolsSchema }, ['tools']));

/**
 * The tools of an `additional_tools` item.
 *
 * @param path of the item.
 * @throws ProtocolError 400
 */
export function parseTools(item: object, path: readonly (string | number)[]): readonly RequestTool[] {
  return validator.check(item, (mistake) => schemaErrorToProtocol({ ...mistake, path: [...path, ...mistake.path] })).tools;
}
