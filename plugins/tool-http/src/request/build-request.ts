import { isFields } from '../document/fields.js';
import { badArgument, tooDeep } from '../errors/errors.js';
import type { BodyPlan, OperationPlan, ParameterPlan } from '../operation/compile-operation.js';
import { encode } from './encode.js';
import { formText } from './form.js';
import { cookiePairs, headerText, pathText, queryText } from './styles.js';

type Input = Readonly<Record<string, unknown>>;

/** A request without the address of its server. */
export interface BuiltRequest {
  readonly method: string;
  /** Below the address of the server, encoded. */
  readonly path: string;
  /** Encoded, without `?`. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/**
 * Makes the request of a call: what the document says, and nothing else (OAS-7, OAS-11).
 *
 * @param input the arguments, which match the tool's schema.
 * @throws HttpCallError that names an argument that cannot be sent.
 */
export function buildRequest(plan: OperationPlan, input: Input): BuiltRequest {
  try {
    return build(plan, input);
  } catch (error) {
    throw error instanceof RangeError ? tooDeep(error) : error;
  }
}

function build(plan: OperationPlan, input: Input): BuiltRequest {
  const { method, parameters, body } = plan;
  const values = new Map<ParameterPlan, unknown>();
  for (const parameter of parameters) {
    const value = Object.hasOwn(input, parameter.argument) ? plan.aliases.restore(input[parameter.argument]) : undefined;
    if (value !== undefined && value !== null) values.set(parameter, value);
  }
  const sent = [...values];
  const content = body && bodyValue(plan, body, input);
  return {
    method,
    path: pathOf(plan, values),
    query: sent.flatMap(([parameter, value]) => queryOf(parameter, value)).join('&'),
    headers: {
      ...headersOf(sent),
      ...(body && content !== undefined && { 'content-type': body.mediaType }),
    },
    body: body && content !== undefined ? bodyText(body, content) : undefined,
  };
}

/** The path, in which no value adds or removes a step. */
function pathOf({ path, parameters }: OperationPlan, values: ReadonlyMap<ParameterPlan, unknown>): string {
  const named = new Map(parameters.filter((one) => one.in === 'path').map((parameter) => [parameter.name, parameter]));
  return path
    .split('/')
    .map((step) => {
      let last: ParameterPlan | undefined;
      const filled = step.replace(/\{([^{}]+)\}|[^{}]+|[{}]/g, (literal, name: string | undefined) => {
        const parameter = name === undefined ? undefined : named.get(name);
        if (!parameter) return literal.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@%]+/g, encode);
        last = parameter;
        return pathValue(parameter, values.get(parameter));
      });
      if (last && (filled === '.' || filled === '..')) throw badArgument(last.argument, `cannot be "${filled}" in a path`);
      return filled;
    })
    .join('/');
}

function pathValue(parameter: ParameterPlan, value: unknown): string {
  const isEmpty = value === undefined || value === '' || (typeof value === 'object' && Object.keys(value ?? {}).length === 0);
  const text = isEmpty ? '' : pathText(parameter, value);
  if (text === '') throw badArgument(parameter.argument, 'is part of the path and must not be empty');
  if (value === '.' || value === '..') throw badArgument(parameter.argument, `cannot be "${value}" in a path`);
  return text;
}

function queryOf(parameter: ParameterPlan, value: unknown): readonly string[] {
  if (parameter.in === 'query') return [queryText(parameter, value)].filter((pairs) => pairs !== '');
  if (parameter.in !== 'querystring') return [];
  if (isFields(value) && !/json/i.test(parameter.mediaType ?? '')) return [formText(value, {})].filter((pairs) => pairs !== '');
  return [encode(typeof value === 'string' ? value : JSON.stringify(value))];
}

function headersOf(sent: readonly (readonly [ParameterPlan, unknown])[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>();
  const cookies: string[] = [];
  for (const [parameter, value] of sent) {
    if (parameter.in === 'header')
      headers.set(parameter.name.toLowerCase(), checkedHeader(parameter, headerText(parameter, value)));
    if (parameter.in === 'cookie') cookies.push(...checkedCookies(parameter, cookiePairs(parameter, value)));
  }
  const cookie = cookies.join('; ');
  return { ...Object.fromEntries(headers), ...(cookie !== '' && { cookie }) };
}

/** RFC 9110, section 5.5: a line break would begin another header. */
function checkedHeader({ argument }: ParameterPlan, text: string): string {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) throw badArgument(argument, 'has characters that a header cannot have');
  return text.trim();
}

/** RFC 6265, section 4.1.1: the style `cookie` encodes nothing, and `;` begins another cookie. */
function checkedCookies({ argument }: ParameterPlan, pairs: readonly string[]): readonly string[] {
  if (pairs.some((pair) => /[^\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e,]/.test(pair)))
    throw badArgument(argument, 'has characters that a cookie cannot have');
  return pairs;
}

/** Undefined if there is nothing to send. */
function bodyValue({ aliases, parameters }: OperationPlan, body: BodyPlan, input: Input): unknown {
  if (body.whole !== undefined) return Object.hasOwn(input, body.whole) ? aliases.restore(input[body.whole]) : undefined;
  const own = new Set(parameters.map(({ argument }) => argument));
  const keys = new Map(body.properties);
  const entries = Object.entries(input).flatMap(([argument, value]) => {
    const key = keys.get(argument) ?? (body.takesOthers && !own.has(argument) ? argument : undefined);
    return key === undefined ? [] : [[key, aliases.restore(value)] as const];
  });
  return entries.length > 0 || body.required ? Object.fromEntries(entries) : undefined;
}

function bodyText({ isForm, encoding }: BodyPlan, content: unknown): string {
  if (isForm) return typeof content === 'string' ? content : formText(content, encoding);
  return JSON.stringify(content);
}
