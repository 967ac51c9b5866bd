import type { ToolPart, ToolResultParts } from '@plugboard/kernel/contracts';

/**
 * What an MCP server answers to `tools/call`, as the runtime takes it. The answer is whatever the server wrote: nothing in it is relied on,
 * and nothing makes this throw.
 */
export function toolResultOf(result: Readonly<Record<string, unknown>>): ToolResultParts {
  const content = Array.isArray(result.content) ? result.content.map(partOf) : [];
  if (content.length === 0 && result.structuredContent !== undefined)
    return structured(result.structuredContent, isError(result));
  return { content, isError: isError(result) };
}

function isError(result: Readonly<Record<string, unknown>>): boolean {
  return result.isError === true;
}

/** Content blocks of MCP: text, image, audio, resource (a file's text or bytes), resource_link (where one is). */
function partOf(block: unknown): ToolPart {
  if (!isRecord(block)) return other('content of no kind', block);
  const { type, text, data, mimeType } = block;
  if (type === 'text' && typeof text === 'string') return { type: 'text', text };
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string') return { type: 'image', mimeType, data };
  if (type === 'audio') return { type: 'other', kind: word(mimeType) ?? 'audio', bytes: base64Size(data) };
  if (type === 'resource' && isRecord(block.resource)) return embedded(block.resource);
  if (type === 'resource_link') return link(block);
  return other(word(type) ?? 'content of no kind', block);
}

function embedded(resource: Readonly<Record<string, unknown>>): ToolPart {
  if (typeof resource.text === 'string') return { type: 'text', text: resource.text };
  return { type: 'other', kind: word(resource.mimeType) ?? 'resource', bytes: base64Size(resource.blob) };
}

/** The address is part of the kind: it is all that there is, and another tool may take it. */
function link({ uri, mimeType, size }: Readonly<Record<string, unknown>>): ToolPart {
  const kind = ['resource_link', word(mimeType), word(uri)].filter((part) => part !== undefined).join(' ');
  return { type: 'other', kind, bytes: typeof size === 'number' && size > 0 ? size : 0 };
}

function other(kind: string, block: unknown): ToolPart {
  return { type: 'other', kind, bytes: Buffer.byteLength(json(block) ?? '') };
}

/** Servers that have nothing to say but data say it as JSON. */
function structured(value: unknown, isError: boolean): ToolResultParts {
  const text = json(value);
  if (text !== undefined) return { content: [{ type: 'text', text }], isError };
  return {
    content: [{ type: 'text', text: 'The structured content of the result is nested too deeply to be written out.' }],
    isError: true,
  };
}

/** Undefined where the value cannot be written: of what comes from JSON, only what is nested some thousand levels deep. */
function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** The number of bytes that base64 text stands for; 0 for what is none. */
function base64Size(data: unknown): number {
  return typeof data === 'string' ? Buffer.byteLength(data, 'base64') : 0;
}

/** The longest type or address that is worth a model's attention. */
const LONGEST_WORD = 500;

function word(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, LONGEST_WORD).toWellFormed() : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
