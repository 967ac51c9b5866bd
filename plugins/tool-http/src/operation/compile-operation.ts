import type { Tool } from '@plugboard/kernel';
import { copyOf } from '../document/copy.js';
import type { OpenApiDocument } from '../document/document.js';
import { fieldsOf, textOf } from '../document/fields.js';
import { effectOf, type Operation } from '../document/operations.js';
import { OperationFault } from '../errors/errors.js';
import { Aliases } from '../schema/aliases.js';
import { SchemaConverter } from '../schema/convert-schema.js';
import { describe, type Schema } from '../schema/keywords.js';
import { argumentNames } from './argument-names.js';
import { bodyOf, type RequestBody } from './body.js';
import { type Parameter, parametersOf } from './parameters.js';

/** Arguments that one tool may have. */
const MAX_ARGUMENTS = 500;

/** A parameter and the argument that sets it. */
export interface ParameterPlan extends Omit<Parameter, 'schema' | 'description'> {
  readonly argument: string;
}

/** How arguments become a body. */
export interface BodyPlan extends Pick<RequestBody, 'mediaType' | 'isForm' | 'required' | 'encoding'> {
  /** The argument that is the whole body; undefined if its properties are arguments. */
  readonly whole: string | undefined;
  /** The arguments that are properties, and their keys. */
  readonly properties: readonly (readonly [argument: string, key: string])[];
  /** Whether other arguments are properties, too. */
  readonly takesOthers: boolean;
}

/** What is needed to declare and to call an operation. It holds no part of the document. */
export interface OperationPlan {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Schema;
  readonly effect: NonNullable<Tool['effect']>;
  /** Whether the document has the header for the key of a call (OAS-13). */
  readonly keyed: boolean;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly ParameterPlan[];
  readonly body: BodyPlan | undefined;
  readonly aliases: Aliases;
}

/** Something that becomes an argument. */
interface Argument {
  /** Of the parameter, or the key of a property. */
  readonly name: string;
  readonly in: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
}

/**
 * Converts one operation.
 *
 * @param ownHeaders the operator's, in lower case: they are not arguments.
 * @param maxParts of one schema.
 * @throws OperationFault if it cannot be a tool, DocumentFault if it refers to another document.
 */
export function compileOperation(
  document: OpenApiDocument,
  operation: Operation,
  ownHeaders: ReadonlySet<string>,
  maxParts?: number,
): OperationPlan {
  const { name, method, path, fields } = operation;
  const aliases = new Aliases();
  const converter = new SchemaConverter(document, aliases, maxParts);
  const parameters = parametersOf(document, operation, ownHeaders);
  const body = bodyOf(document, fields);
  const bodySchema = body && converter.convert(body.schema);
  const all: readonly Argument[] = [
    ...parameters.map((parameter) => argumentOf(converter, parameter, effectOf(method) !== 'read')),
    ...(body && bodySchema ? argumentsOfBody(body, bodySchema, aliases) : []),
  ];
  if (all.length > MAX_ARGUMENTS) throw new OperationFault(`it has more than ${MAX_ARGUMENTS} arguments`);
  const names = argumentNames(all, aliases);
  const required = names.filter((_, index) => all[index]?.isRequired);
  const others = isObject(bodySchema) ? bodySchema.additionalProperties : undefined;
  const texts = [textOf(fields.summary), textOf(fields.description)].filter((text) => text !== undefined);
  const plan = {
    name,
    description: describe(texts.join('\n\n')) ?? `${method} ${path}`,
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(names.map((argument, index) => [argument, all[index]?.schema])),
      ...(required.length > 0 && { required }),
      additionalProperties: others ?? false,
    },
    effect: effectOf(method),
    keyed: effectOf(method) !== 'read' && parameters.some(isKey),
    method,
    path,
    parameters: parameters.map(({ schema: _, description: __, ...parameter }, index) => ({
      ...parameter,
      argument: names[index] ?? parameter.name,
    })),
    body: body && {
      mediaType: body.mediaType,
      isForm: body.isForm,
      required: body.required,
      encoding: body.encoding,
      whole: isObject(bodySchema) ? undefined : names.at(-1),
      properties: all
        .slice(parameters.length)
        .map(({ name }, index) => [names[parameters.length + index] ?? name, name] as const),
      takesOthers: others !== undefined && others !== false,
    },
  };
  return { ...copyOf(plan), aliases };
}

/** Whether the properties of a body can be arguments beside the parameters. */
function isObject(schema: Schema | undefined): schema is Schema {
  return schema?.type === 'object' && schema.properties !== undefined && schema.anyOf === undefined;
}

/** A default is filled in only if the parameter is required (OAS-11). */
function argumentOf(converter: SchemaConverter, parameter: Parameter, hasKey: boolean): Argument {
  const { name, schema, description, required } = parameter;
  const converted = withDescription(converter.convert(schema), description, schema.default);
  const isFilled = required && ['string', 'number', 'boolean'].includes(typeof schema.default);
  return {
    name,
    in: parameter.in,
    schema: isFilled ? { ...converted, default: schema.default } : converted,
    // The call has a key of its own (OAS-13).
    isRequired: required && !(hasKey && isKey(parameter)),
  };
}

function isKey(parameter: Parameter): boolean {
  return parameter.in === 'header' && parameter.name.toLowerCase() === 'idempotency-key';
}

function argumentsOfBody(body: RequestBody, schema: Schema, aliases: Aliases): readonly Argument[] {
  if (!isObject(schema))
    return [{ name: 'body', in: 'body', schema: withDescription(schema, body.description), isRequired: body.required }];
  const needed = new Set(schema.required as readonly string[] | undefined);
  return Object.entries(fieldsOf(schema.properties)).map(([alias, property]) => ({
    name: aliases.keyOf(alias),
    in: 'body',
    schema: property,
    isRequired: body.required && needed.has(alias),
  }));
}

function withDescription(schema: Schema, description: unknown, preset?: unknown): Schema {
  return textOf(description) === undefined ? schema : { ...schema, description: describe(description, preset) };
}
