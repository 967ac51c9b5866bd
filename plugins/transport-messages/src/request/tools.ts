import type { Target, ToolDeclaration } from '@plugboard/kernel/contracts';
import { invalidField } from '../errors/messages-error.js';
import { builtInTool } from './built-in-tools.js';
import { type Block, blocksOf, TOOL_CHANGES } from './content.js';
import { asFlag, asList, asObject, asText, asWord, type Fields, join, quote, required } from './fields.js';
import type { Ignored } from './ignored.js';

/** More are a mistake of the client: no model can choose among them. */
const MAX_TOOLS = 1024;

/** Fields of a tool that mean something to a cache, or say how the arguments travel. */
const WITHOUT_MEANING = new Set(['cache_control', 'eager_input_streaming', 'defer_loading', 'type']);
const KNOWN = new Set(['name', 'description', 'input_schema', 'strict', ...WITHOUT_MEANING]);

/** The tools of a request and what it says about them. */
export interface RequestTools {
  /** Empty if the agent ignores the tools of its callers. */
  readonly declarations: readonly ToolDeclaration[];
  /** Parameters of the model calls, by their names at model connections. */
  readonly params: Readonly<Record<string, unknown>>;
}

/**
 * Reads `tools` and `tool_choice`. Tools that only a server of the provider could run are left out
 * and named; so are all if the agent ignores the tools of its callers.
 *
 * @throws MessagesError 400 for a malformed tool, two of one name, or a choice that forces a call
 *   that cannot come.
 */
export function toolsOf(request: Fields, target: Target, ignored: Ignored): RequestTools {
  const tools = request.tools == null ? [] : asList(request.tools, 'tools');
  if (tools.length > MAX_TOOLS) throw invalidField('tools', `List should have at most ${MAX_TOOLS} items`);
  const all = tools.flatMap((tool, index) => declarationOf(asObject(tool, `tools.${index}`), `tools.${index}`, ignored) ?? []);
  assertDistinct(all);
  const offered = withChanges(all, request.messages, ignored);
  const takesTools = target.clientTools !== 'ignore';
  if (!takesTools && tools.length > 0) ignored.add('tools');
  const declarations = takesTools ? offered : [];
  return { declarations, params: choiceOf(request.tool_choice, declarations, target, ignored) };
}

function declarationOf(tool: Fields, path: string, ignored: Ignored): ToolDeclaration | undefined {
  const type = tool.type == null ? 'custom' : asText(tool.type, join(path, 'type'));
  if (type !== 'custom') {
    const known = builtInTool(type, tool.name);
    if (!known) ignored.add(join(path, type));
    return known;
  }
  const name = asText(required(tool, 'name', path), join(path, 'name'));
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
    throw invalidField(join(path, 'name'), "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'");
  }
  for (const field in tool) if (!KNOWN.has(field)) ignored.add(join(path, field));
  return {
    name,
    description: tool.description == null ? '' : asText(tool.description, join(path, 'description')),
    inputSchema: asObject(required(tool, 'input_schema', path), join(path, 'input_schema')),
    ...(tool.strict == null ? {} : { strict: asFlag(tool.strict, join(path, 'strict')) }),
  };
}

/**
 * The tools after what messages of the role `system` add and remove. Claude Code adds the tools of
 * a server that connects in the middle of a conversation.
 */
function withChanges(tools: readonly ToolDeclaration[], messages: unknown, ignored: Ignored): readonly ToolDeclaration[] {
  const known = new Map(tools.map((tool) => [tool.name, tool]));
  const offered = new Map(known);
  for (const { type, fields, path } of toolChangesIn(messages)) {
    const place = join(path, 'tool');
    const tool = asObject(required(fields, 'tool', path), place);
    if (type === 'tool_addition' && tool.type === 'tool_definition') {
      const at = join(place, 'definition');
      const added = declarationOf(asObject(required(tool, 'definition', place), at), at, ignored);
      if (!added) continue;
      known.set(added.name, added);
      offered.set(added.name, added);
      continue;
    }
    const name = asText(required(tool, 'name', place), join(place, 'name'));
    const referred = known.get(name);
    if (type === 'tool_removal') offered.delete(name);
    else if (referred) offered.set(name, referred);
  }
  return [...offered.values()];
}

/** The changes of the tools, in their order. Messages that are malformed have none. */
export function toolChangesIn(messages: unknown): readonly Block[] {
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message, index) => {
    if (message?.role !== 'system' || !Array.isArray(message.content)) return [];
    const blocks = blocksOf(message.content, join(join('messages', index), 'content'));
    return blocks.filter(({ type }) => TOOL_CHANGES.includes(type));
  });
}

function assertDistinct(tools: readonly ToolDeclaration[]): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name)) throw invalidField('tools', `Tool names must be unique, and '${quote(name)}' is not`);
    names.add(name);
  }
}

function choiceOf(
  value: unknown,
  tools: readonly ToolDeclaration[],
  target: Target,
  ignored: Ignored,
): Readonly<Record<string, unknown>> {
  if (value == null) return {};
  const choice = asObject(value, 'tool_choice');
  const type = asWord(required(choice, 'type', 'tool_choice'), 'tool_choice.type', ['auto', 'any', 'tool', 'none']);
  const name = type === 'tool' ? asText(required(choice, 'name', 'tool_choice'), 'tool_choice.name') : undefined;
  const isForced = type === 'any' || type === 'tool';
  if (name !== undefined && tools.length > 0 && !tools.some((tool) => tool.name === name)) {
    throw invalidField('tool_choice.name', `Tool '${quote(name)}' not found in provided tools, or this server cannot offer it`);
  }
  if (isForced && (tools.length === 0 || !target.forwardsParam('tool_choice'))) throw cannotForce(target);
  const serial = choice.disable_parallel_tool_use;
  const isSerial = serial != null && asFlag(serial, 'tool_choice.disable_parallel_tool_use');
  const params: Record<string, unknown> = {};
  if (tools.length === 0) return params;
  if (target.forwardsParam('tool_choice')) params.tool_choice = CHOICES[type](name);
  else if (type === 'none') ignored.add('tool_choice');
  if (isSerial && target.forwardsParam('parallel_tool_calls')) params.parallel_tool_calls = false;
  else if (isSerial) ignored.add('tool_choice.disable_parallel_tool_use');
  return params;
}

/** The choices, as model connections name them. */
const CHOICES = {
  auto: () => 'auto',
  any: () => 'required',
  none: () => 'none',
  tool: (name: string | undefined) => ({ type: 'function', function: { name } }),
} as const;

function cannotForce(target: Target) {
  return invalidField(
    'tool_choice',
    target.clientTools === 'ignore'
      ? "a call cannot be forced: this agent runs its own tools and ignores those of a request. Only 'auto' and 'none' are supported"
      : 'a call cannot be forced: the request has no tools that the client runs, or the model connection does not support it',
  );
}
