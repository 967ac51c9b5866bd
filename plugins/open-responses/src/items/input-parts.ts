import type { AssistantMessage, ContentPart, Target, TextPart, UserMessage } from '@plugboard/kernel/contracts';
import {
  invalidValue,
  type JsonObject,
  optionalString,
  requireField,
  requireObject,
  requireString,
  unsupportedPart,
  wrongType,
  wrongValue,
} from '@plugboard/openai-protocol';

/** The name of the target's model connection if it takes text only. */
export function connectionForTextOnly({ input, connection }: Target): string | undefined {
  return input.includes('image') ? undefined : connection;
}

/**
 * The content of a user's message item: a text, or parts. Text parts alone become one string.
 *
 * @param textOnly the name of the model connection if it takes text only.
 * @throws ProtocolError 400
 */
export function userContent(content: unknown, param: string, textOnly: string | undefined): UserMessage['content'] {
  const parts = partsAt(content, param);
  if (typeof parts === 'string') return parts;
  const taken = parts.map((part, index) => contentPart(part, `${param}[${index}]`, textOnly));
  return joined(taken) ?? taken;
}

/**
 * The content of an assistant's message item: its text, and its refusal. @throws ProtocolError 400
 */
export function assistantContent(content: unknown, param: string): Pick<AssistantMessage, 'content' | 'refusal'> {
  const parts = partsAt(content, param);
  if (typeof parts === 'string') return { content: parts };
  let text: string | null = null;
  let refusal: string | undefined;
  for (const [index, part] of parts.entries()) {
    const path = `${param}[${index}]`;
    const type = typeOf(part, path);
    if (type === 'output_text') text = (text ?? '') + requireString(requireField(part, 'text', path), `${path}.text`);
    else if (type === 'refusal')
      refusal = (refusal ?? '') + requireString(requireField(part, 'refusal', path), `${path}.refusal`);
    else throw wrongValue(`${path}.type`, type, ['output_text', 'refusal']);
  }
  return refusal === undefined ? { content: text ?? '' } : { content: text, refusal };
}

/** Content that is text only: instructions. @throws ProtocolError 400 */
export function onlyText(content: unknown, param: string): string {
  return toolOutput(content, param, false).text;
}

/**
 * The output of a caller's tool: its text, and images for a model that takes them (CL-9), as URLs.
 *
 * @throws ProtocolError 400
 */
export function toolOutput(content: unknown, param: string, hasImages: boolean) {
  const more = hasImages ? ['input_image'] : [];
  const parts = partsAt(content, param);
  if (typeof parts === 'string') return { text: parts, images: [] };
  let text = '';
  const images: string[] = [];
  for (const [index, part] of parts.entries()) {
    const path = `${param}[${index}]`;
    const type = typeOf(part, path);
    if (type === 'input_text') text += requireString(requireField(part, 'text', path), `${path}.text`);
    else if (more.includes(type)) images.push(imageUrl(part, path));
    else throw wrongValue(`${path}.type`, type, ['input_text', ...more]);
  }
  return { text, images };
}

function partsAt(content: unknown, param: string): string | readonly JsonObject[] {
  if (typeof content === 'string') return requireString(content, param);
  if (!Array.isArray(content)) throw wrongType(param, 'one of a string or array of objects', content);
  return content.map((part, index) => requireObject(part, `${param}[${index}]`));
}

function typeOf(part: JsonObject, param: string): string {
  return requireString(requireField(part, 'type', param), `${param}.type`);
}

function contentPart(part: JsonObject, param: string, textOnly: string | undefined): ContentPart {
  const type = typeOf(part, param);
  if (!PARTS.includes(type)) throw wrongValue(`${param}.type`, type, PARTS);
  if (type !== 'input_text' && textOnly !== undefined) throw unsupportedPart(param, type, textOnly);
  switch (type) {
    case 'input_image': {
      const url = imageUrl(part, param);
      const detail = optionalString(part.detail, `${param}.detail`);
      return { type: 'image_url', image_url: { url, ...(detail === undefined ? {} : { detail }) } };
    }
    case 'input_file': {
      refuseFileId(part, param);
      if (part.file_url != null)
        throw invalidValue(`${param}.file_url`, "this server does not fetch files: send the file itself as 'file_data'");
      const filename = optionalString(part.filename, `${param}.filename`);
      const data = requireString(requireField(part, 'file_data', param), `${param}.file_data`);
      return { type: 'file', file: { ...(filename === undefined ? {} : { filename }), file_data: data } };
    }
    case 'input_audio': {
      const path = `${param}.input_audio`;
      const audio = requireObject(requireField(part, 'input_audio', param), path);
      const data = requireString(requireField(audio, 'data', path), `${path}.data`);
      return { type, input_audio: { data, format: requireString(requireField(audio, 'format', path), `${path}.format`) } };
    }
    default:
      return { type: 'text', text: requireString(requireField(part, 'text', param), `${param}.text`) };
  }
}

/** The parts of a user's message. */
const PARTS: readonly string[] = ['input_text', 'input_image', 'input_file', 'input_audio'];

function imageUrl(part: JsonObject, param: string): string {
  refuseFileId(part, param);
  return requireString(requireField(part, 'image_url', param), `${param}.image_url`);
}

function refuseFileId(part: JsonObject, param: string): void {
  if (part.file_id != null) throw invalidValue(`${param}.file_id`, 'this server does not store files: send the content itself');
}

/** The joined text of parts that are all text. */
function joined(parts: readonly ContentPart[]): string | undefined {
  return parts.every((part): part is TextPart => part.type === 'text') ? parts.map(({ text }) => text).join('') : undefined;
}
