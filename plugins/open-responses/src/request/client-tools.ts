import type { Target, ToolDeclaration } from '@plugboard/kernel/contracts';
import { invalidValue, unsupportedValue } from '@plugboard/openai-protocol';
import { headerSafeName } from '@plugboard/turn-routes';
import { customInputSchema } from '../tools/custom-input.js';
import { type CallForm, modelName } from '../tools/tool-name.js';
import type { InputItem, RequestTool, ResponseRequest, ToolChoice } from './request.js';
import { MAX_TOOLS, parseTools } from './tool-schema.js';

/** The tools that the caller brought and runs itself. */
export interface ClientTools {
  readonly declarations: readonly ToolDeclaration[];
  /** Where each declaration was sent: `tools[1].tools[0]`. */
  readonly params: readonly string[];
  /** How their calls are shown, by the names of the tools at the model. */
  readonly forms: ReadonlyMap<string, CallForm>;
  /** The tool choice in the words of chat completions, which model connections speak. */
  readonly choice: unknown;
  /** Tools that no one runs here, for `x-ignored-params`. */
  readonly ignored: readonly string[];
  /** The tools that items added, of this request and of those that it continues. */
  readonly added: readonly RequestTool[];
}

/** A tool that the caller runs, where it was sent, and how its calls are shown. */
interface ClientTool {
  readonly declaration: ToolDeclaration;
  readonly param: string;
  readonly form: CallForm;
}

/**
 * Reads the tools of a request, and those that items of its input add. Only an agent whose
 * configuration says `clientTools: ignore` does without them. `allowed_tools` leaves out the
 * others, so that no model can call them. Tools that are neither functions nor custom tools run at
 * no one here; they are left out and named.
 *
 * @param inherited the tools that items of earlier requests added. One that is sent again replaces
 *   the earlier one of its name.
 * @throws ProtocolError 400 if two tools have one name, or if the request forces a call that cannot
 *   come.
 */
export function clientToolsOf(
  { tools = [], tool_choice: choice }: ResponseRequest,
  items: readonly InputItem[],
  inherited: readonly RequestTool[],
  target: Target,
): ClientTools {
  const list = new ToolList();
  const added: RequestTool[] = [];
  if (target.clientTools !== 'ignore') {
    list.add(tools, 'tools', 'tools');
    for (const [index, item] of items.entries()) {
      if (item?.type !== 'additional_tools') continue;
      const more = parseTools(item, ['input', index]);
      list.add(more, `input[${index}].tools`, `input.${index}.tools`);
      for (const tool of more) added.push(tool);
    }
    list.inherit(inherited);
  }
  const allowed = typeof choice === 'object' && choice.type === 'allowed_tools' ? new Set(choice.tools.map(nameOf)) : undefined;
  const taken = [...list.tools].flatMap(([name, tool]) => (allowed?.has(name) === false ? [] : [tool]));
  if (isForced(choice)) {
    const isKnown = typeof choice !== 'object' || choice.type === 'allowed_tools' || list.tools.has(nameOf(choice));
    if (taken.length === 0 || !target.forwardsParam('tool_choice')) throw cannotForce(target);
    if (!isKnown) {
      const problem = 'names a tool that is not among the functions and custom tools of the request';
      throw unsupportedValue('tool_choice', `Unsupported value: 'tool_choice' ${problem}.`);
    }
  }
  return {
    declarations: taken.map(({ declaration }) => declaration),
    params: taken.map(({ param }) => param),
    forms: new Map([...list.tools].map(([name, { form }]) => [name, form])),
    choice: chatToolChoice(choice),
    ignored: list.ignored,
    added: mergeTools([inherited, added]),
  };
}

/**
 * Joins the tools that items added, request after request. One that is added again replaces the
 * earlier one of its name.
 */
export function mergeTools(requests: readonly (readonly RequestTool[])[]): readonly RequestTool[] {
  const byName = new Map<string, RequestTool[]>();
  for (const tools of requests) {
    for (const tool of tools) byName.delete(kindAndName(tool));
    for (const tool of tools) {
      const same = byName.get(kindAndName(tool)) ?? [];
      same.push(tool);
      byName.set(kindAndName(tool), same);
    }
  }
  return [...byName.values()].flat();
}

/** Collects tools. */
class ToolList {
  /** By their names at the model. */
  readonly tools = new Map<string, ClientTool>();
  readonly ignored: string[] = [];

  /** @param param where the list is. @param path the same for `x-ignored-params`. */
  add(tools: readonly RequestTool[], param: string, path: string, namespace?: RequestTool): void {
    for (const [index, tool] of tools.entries()) {
      const at = `${param}[${index}]`;
      // What a namespace is about is said once, with its first tool.
      const about = index === 0 ? namespace?.description : undefined;
      if (tool.type === 'namespace') this.add(tool.tools ?? [], `${at}.tools`, `${path}.${index}.tools`, tool);
      else if (tool.type === 'function' || tool.type === 'custom') this.#declare(tool, tool.type, at, namespace?.name, about);
      else this.ignored.push(headerSafeName(`${path}.${index}.${tool.type}`));
    }
  }

  /** Adds tools of earlier requests, but those whose names are taken. */
  inherit(tools: readonly RequestTool[]): void {
    const earlier = new ToolList();
    earlier.add(tools, 'previous_response_id', 'previous_response_id');
    for (const [name, tool] of earlier.tools) if (!this.tools.has(name)) this.tools.set(name, tool);
  }

  #declare(tool: RequestTool, type: CallForm['type'], param: string, namespace?: string, about?: string | null): void {
    const { name: own = '' } = tool;
    const name = modelName(namespace, own);
    if (this.tools.has(name)) throw invalidValue(`${param}.name`, `two tools have the name '${name}' at the model`);
    if (this.tools.size >= MAX_TOOLS) throw invalidValue(param, `a request may have ${MAX_TOOLS} tools`);
    const declaration = { name, ...declarationOf(tool, about) };
    this.tools.set(name, { declaration, param, form: { type, name: own, namespace } });
  }
}

function kindAndName({ type, name = '' }: RequestTool): string {
  return `${type} ${name}`;
}

function declarationOf(tool: RequestTool, about: string | null | undefined): Omit<ToolDeclaration, 'name'> {
  const lines = [about, tool.description, tool.type === 'custom' ? grammarOf(tool) : undefined];
  const description = lines.filter(Boolean).join('\n\n');
  if (tool.type === 'custom') return { description, inputSchema: customInputSchema };
  return {
    description,
    inputSchema: tool.parameters ?? { type: 'object', properties: {} },
    ...(tool.strict == null ? {} : { strict: tool.strict }),
  };
}

/** Models of other protocols know no grammars: they are told. */
function grammarOf({ format }: RequestTool): string | undefined {
  const { type, syntax, definition } = format ?? {};
  if (type !== 'grammar' || typeof definition !== 'string') return undefined;
  return `The input must match this ${String(syntax ?? '')} grammar:\n${definition}`;
}

function chatToolChoice(choice: ToolChoice | undefined): unknown {
  if (choice === undefined || typeof choice === 'string') return choice;
  return choice.type === 'allowed_tools' ? choice.mode : { type: 'function', function: { name: nameOf(choice) } };
}

/** The name at the model of a tool that a tool choice names. */
function nameOf({ name = '', namespace }: { readonly name?: string; readonly namespace?: string }): string {
  return modelName(namespace, name);
}

function isForced(choice: ToolChoice | undefined): boolean {
  if (choice === undefined || typeof choice === 'string') return choice === 'required';
  return choice.type !== 'allowed_tools' || choice.mode === 'required';
}

function cannotForce(target: Target) {
  return unsupportedValue(
    'tool_choice',
    target.clientTools === 'ignore'
      ? "Unsupported value: 'tool_choice' cannot force a tool call: this agent runs its own tools and ignores those of a request. Only 'auto' and 'none' are supported."
      : "Unsupported value: 'tool_choice' cannot force a tool call: the request brings no such tools, or the model connection does not take 'tool_choice'.",
  );
}
