import { SHAPE_LIMITS, TurnError } from '@plugboard/kernel/contracts';

/** As errors show it. A constant would load data of languages at the start. */
const maxCalls = () => SHAPE_LIMITS.calls.toLocaleString('en');

type Fields = Readonly<Record<string, unknown>>;

/** Checks one part of a content. Returns what is wrong with it, and where. */
type PartCheck = (part: Fields) => string | undefined;

const isText = (value: unknown) => typeof value === 'string';
const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

/** A part that is a text, or an object with a text, under the name of its type. */
function partWith(name: string, ...inner: readonly string[]): PartCheck {
  return (part) => {
    const value = part[name];
    if (inner.length === 0) return isText(value) ? undefined : `${name} must be a string`;
    if (!isObject(value)) return `${name} must be an object`;
    const missing = inner.find((field) => !isText(value[field]));
    return missing && `${name}.${missing} must be a string`;
  };
}

const checkCustomCall = partWith('custom', 'name', 'input');
const checkFunctionCall = partWith('function', 'name', 'arguments');
const TEXT = { text: partWith('text') };
const PARTS: Readonly<Record<string, Readonly<Record<string, PartCheck>>>> = {
  system: TEXT,
  tool: TEXT,
  assistant: { ...TEXT, refusal: partWith('refusal') },
  user: {
    ...TEXT,
    image_url: partWith('image_url', 'url'),
    input_audio: partWith('input_audio', 'data', 'format'),
    video_url: partWith('video_url', 'url'),
    file: (part) => (isObject(part.file) ? undefined : 'file must be an object'),
  },
  function: {},
};

/**
 * Checks the shape of the messages of a turn: a transport may be of any quality, and a message that
 * no model accepts would make its session unusable. Their order is checked where it is known what
 * they follow (`newMessages`, `assertPairedToolCalls`).
 *
 * @throws TurnError `invalid_request` for the first mistake.
 */
export function assertMessages(messages: unknown): void {
  if (!Array.isArray(messages)) throw malformed('messages', 'must be an array of messages');
  for (const [index, message] of messages.entries()) {
    const problem = isObject(message) ? problemOf(message) : 'must be an object with a role';
    if (problem !== undefined) throw malformed(`messages[${index}]`, problem);
  }
}

function problemOf(message: Fields): string | undefined {
  const { role, content } = message;
  const parts = isText(role) && Object.hasOwn(PARTS, role) ? PARTS[role] : undefined;
  if (!parts) return `has the role ${show(role)}; use system, user, assistant or tool`;
  if (role === 'tool' && !isText(message.tool_call_id)) return 'has no tool_call_id: the id of the call that it answers';
  if (role === 'function' && !isText(message.name)) return 'has no name: that of the function that it answers for';
  if (role === 'assistant') {
    const problem = callsProblem(message.tool_calls);
    if (problem !== undefined) return problem;
  }
  if (isText(content)) return undefined;
  if (content === null && mayBeNull(message)) return undefined;
  if (!Array.isArray(content) || role === 'function') return `has content of type ${kindOf(content)}; use a string`;
  return contentProblem(content, parts);
}

function contentProblem(content: readonly unknown[], parts: Readonly<Record<string, PartCheck>>): string | undefined {
  for (const [index, part] of content.entries()) {
    const type = isObject(part) ? part.type : undefined;
    const check = isText(type) && Object.hasOwn(parts, type) ? parts[type] : undefined;
    if (!check || !isObject(part)) return `has content[${index}] of type ${show(type)}; use ${Object.keys(parts).join(', ')}`;
    const problem = check(part);
    if (problem !== undefined) return `has an invalid content[${index}]: ${problem}`;
  }
  return undefined;
}

function callsProblem(calls: unknown): string | undefined {
  if (calls === undefined) return undefined;
  if (!Array.isArray(calls) || calls.length === 0) return 'has tool_calls that are not a list of calls; leave them out';
  if (calls.length > SHAPE_LIMITS.calls) return `has ${calls.length} tool_calls; a message may have ${maxCalls()}`;
  const ids = new Set<string>();
  for (const [index, call] of calls.entries()) {
    const { id, type } = isObject(call) ? call : {};
    if (!isText(id) || ids.has(id)) return `has tool_calls[${index}] without an id of its own`;
    ids.add(id);
    const problem = type === 'custom' ? checkCustomCall(call) : checkFunctionCall(call);
    if (problem !== undefined) return `has an invalid tool_calls[${index}]: ${problem}`;
  }
  return undefined;
}

/** An assistant message without text must have something else. */
function mayBeNull({ role, tool_calls, refusal, function_call, audio }: Fields): boolean {
  if (role !== 'assistant') return role === 'function';
  return tool_calls !== undefined || refusal !== undefined || function_call !== undefined || audio !== undefined;
}

function show(value: unknown): string {
  return isText(value) ? `'${value.slice(0, 32).toWellFormed()}'` : kindOf(value);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function malformed(param: string, problem: string): TurnError {
  return new TurnError('invalid_request', `${param} ${problem}.`, { param });
}
