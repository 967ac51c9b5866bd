import type { ToolPart, ToolResultParts } from '@plugboard/kernel/contracts';

/** Converts the unchecked answer to `tools/call`: nothing in it makes this throw. */
export function toolResultOf(result: Readonly<Record<string, unknown>>): ToolResultParts {
  const content = Array.isArray(result.content) ? result.content.map(partOf) : [];
  if (content.length === 0 && result.structuredContent !== undefined)
    return structured(result.structuredContent, isError(result));
  return { content, isError: isError(result) };
}

function isError(result: Readonly<Record<string, unknown>>): boolean {
  return result.isError === true;
}

/** MCP's blocks: text, image, audio, resource (a file's text or bytes), resource_link. */
function partOf(block: unknown): ToolPart {
  if (!isRecord(block)) return other('unknown content', block);
  const { type, text, data, mimeType } = block;
  if (type === 'text' && typeof text === 'string') return { type: 'text', text };
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string') return { type: 'image', mimeType, data };
  if (type === 'audio') return { type: 'other', kind: word(mimeType) ?? 'audio', bytes: base64Size(data) };
  if (type === 'resource' && isRecord(block.resource)) return embedded(block.resource);
  if (type === 'resource_link') return link(block);
  return other(word(type) ?? 'unknown content', block);
}

function embedded(resource: Readonly<Record<string, unknown>>): ToolPart {
  if (typeof resource.text === 'string') return { type: 'text', text: resource.text };
  return { type: 'other', kind: word(resource.mimeType) ?? 'resource', bytes: base64Size(resource.blob) };
}

/** The kind contains the address, which another tool may be able to read. */
function link({ uri, mimeType, size }: Readonly<Record<string, unknown>>): ToolPart {
  const kind = ['resource_link', word(mimeType), word(uri)].filter((part) => part !== undefined).join(' ');
  return { type: 'other', kind, bytes: typeof size === 'number' && size > 0 ? size : 0 };
}

function other(kind: string, block: unknown): ToolPart {
  return { type: 'other', kind, bytes: Buffer.byteLength(json(block) ?? '') };
}

/** A result that has only structured content reaches the model as JSON. */
function structured(value: unknown, isError: boolean): ToolResultParts {
  const text = json(value);
  if (text !== undefined) return { content: [{ type: 'text', text }], isError };
  return {
    content: [{ type: 'text', text: 'The structured content of the result is nested too deeply to be written as JSON.' }],
    isError: true,
  };
}

/** Undefined if the value cannot be written: JSON that is nested some thousand levels deep. */
function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** The number of bytes that a base64 text encodes; 0 for any other value. */
function base64Size(data: unknown): number {
  return typeof data === 'string' ? Buffer.byteLength(data, 'base64') : 0;
}

/** Characters kept of a type or address. */
const MAX_WORD_LENGTH = 500;

/** A copy: a slice would keep the whole message in memory. */
function word(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return Buffer.from(value.slice(0, MAX_WORD_LENGTH).toWellFormed()).toString();
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
