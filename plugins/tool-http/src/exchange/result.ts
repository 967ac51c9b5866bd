import type { ToolOutput } from '@plugboard/kernel';
import type { ReadBody } from './read-body.js';

const TEXT_TYPES =
  /^(?:text\/|application\/(?:json|xml|javascript|yaml|x-yaml|x-ndjson|jsonl|x-www-form-urlencoded|graphql|sql|toml)$)|\+(?:json|xml|yaml)$/;
/** Bytes that are looked at in a body without a type. */
const SAMPLE = 4_096;

interface Answer {
  readonly status: number;
  readonly contentType: string | undefined;
  /** In bytes, if the server said so. */
  readonly contentLength: number | undefined;
  readonly body: ReadBody;
  /** In bytes. */
  readonly limit: number;
}

/** What the model gets of an answer (OAS-10). */
export function resultOf({ status, contentType, contentLength, body, limit }: Answer): ToolOutput {
  const { bytes, isCut } = body;
  const isError = status >= 400;
  const head = isError ? `HTTP ${status}` : undefined;
  if (bytes.length === 0) return isError ? failed(`HTTP ${status}, without a body`) : `HTTP ${status}, without a body`;
  const type = plainType(contentType);
  if (!isText(type, bytes)) {
    const kind = type === '' ? 'application/octet-stream' : type;
    const other = { type: 'other', kind, bytes: contentLength ?? bytes.length } as const;
    return { content: head === undefined ? [other] : [{ type: 'text', text: head }, other], isError };
  }
  // Before the text: the runtime may cut its end.
  const note = isCut ? `[only the first ${limit} bytes of the answer were read: the rest exceeds \`responseLimit\`]` : undefined;
  const text = [head, note, decoded(bytes, contentType)].filter((part) => part !== undefined).join('\n');
  return isError ? failed(text) : text;
}

function failed(text: string): ToolOutput {
  return { content: [{ type: 'text', text }], isError: true };
}

function isText(type: string, bytes: Buffer): boolean {
  if (type !== '') return TEXT_TYPES.test(type);
  const sample = bytes.subarray(0, SAMPLE);
  return !sample.includes(0) && !sample.toString().slice(0, -1).includes('\ufffd');
}

function plainType(contentType = ''): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase().slice(0, 200);
}

/** In the charset that the server names, if it is known. What is cut at the end is left out. */
function decoded(bytes: Buffer, contentType = ''): string {
  const label = contentType.length > 500 ? undefined : /;\s*charset="?([\w:.-]{1,50})/i.exec(contentType)?.[1];
  return decoderFor(label).decode(bytes, { stream: true });
}

function decoderFor(label = 'utf-8') {
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}
