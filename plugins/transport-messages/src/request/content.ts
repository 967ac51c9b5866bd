import type { ContentPart } from '@plugboard/kernel/contracts';
import { invalidField } from '../errors/messages-error.js';
import { asList, asObject, asText, type Fields, join, quote, required } from './fields.js';
import type { Ignored } from './ignored.js';

/**
 * The signature of every thinking block. Clients want one, and send it back; the server drops the
 * block then. What a connection needs of its own thinking is sealed, or kept with a session.
 */
export const SIGNATURE = Buffer.from('plugboard: not kept').toString('base64');

/** Block types of messages of the role `system` that change the tools of the request. */
export const TOOL_CHANGES: readonly string[] = ['tool_addition', 'tool_removal'];

/** A block of the content of a message, and where it is in the request. */
export interface Block {
  readonly type: string;
  readonly fields: Fields;
  /** As in `messages.0.content.1`. */
  readonly path: string;
}

/** The blocks of a content. A text is one block. */
export function blocksOf(content: unknown, path: string): readonly Block[] {
  if (typeof content === 'string') return [{ type: 'text', fields: { text: content }, path }];
  return asList(content, path).map((value, index) => {
    const place = join(path, index);
    const fields = asObject(value, place);
    return { type: asText(required(fields, 'type', place), join(place, 'type')), fields, path: place };
  });
}

/** The text of blocks that must be text, as in `system`. */
export function onlyText(content: unknown, path: string): string {
  const texts = blocksOf(content, path).map(({ type, fields, path: place }) => {
    if (type !== 'text') throw invalidField(join(place, 'type'), `Input should be 'text', got '${quote(type)}'`);
    return asText(required(fields, 'text', place), join(place, 'text'));
  });
  return texts.join('\n\n');
}

/**
 * The parts of a user message, or of the result of a tool. A block of a type that no model
 * connection takes is left out and named.
 */
export function partsOf(block: Block, ignored: Ignored): readonly ContentPart[] {
  const { type, fields, path } = block;
  switch (type) {
    case 'text':
      return [{ type: 'text', text: asText(required(fields, 'text', path), join(path, 'text')) }];
    case 'image':
      return [image(source(fields, path), join(path, 'source'))];
    case 'document':
      return document(block, ignored);
    case 'search_result':
      return [{ type: 'text', text: searchResult(fields, path) }];
    case 'tool_reference':
      return [{ type: 'text', text: `The tool ${asText(required(fields, 'tool_name', path), join(path, 'tool_name'))}` }];
    default:
      ignored.add(join(path, type));
      return [];
  }
}

function source(fields: Fields, path: string): Fields {
  return asObject(required(fields, 'source', path), join(path, 'source'));
}

function image(source: Fields, path: string): ContentPart {
  const type = asText(required(source, 'type', path), join(path, 'type'));
  if (type === 'url') {
    const url = asText(required(source, 'url', path), join(path, 'url'));
    if (!/^https?:\/\//i.test(url)) throw invalidField(join(path, 'url'), 'Input should be an http or https URL');
    return { type: 'image_url', image_url: { url } };
  }
  if (type === 'base64') return { type: 'image_url', image_url: { url: dataUrl(source, path, /^image\/[a-z0-9.+-]+$/) } };
  throw noFiles(join(path, 'type'), type, "'base64' or 'url'");
}

function document({ fields, path }: Block, ignored: Ignored): readonly ContentPart[] {
  const place = join(path, 'source');
  const from = source(fields, path);
  const title = fields.title == null ? undefined : asText(fields.title, join(path, 'title'));
  if (fields.citations != null && asObject(fields.citations, join(path, 'citations')).enabled === true) {
    ignored.add(join(path, 'citations'));
  }
  const type = asText(required(from, 'type', place), join(place, 'type'));
  switch (type) {
    case 'text': {
      const text = asText(required(from, 'data', place), join(place, 'data'));
      return [{ type: 'text', text: title === undefined ? text : `${title}\n\n${text}` }];
    }
    case 'content':
      return blocksOf(required(from, 'content', place), join(place, 'content')).flatMap((block) => partsOf(block, ignored));
    case 'base64': {
      const file_data = dataUrl(from, place, /^application\/pdf$/);
      return [{ type: 'file', file: { filename: title ?? 'document.pdf', file_data } }];
    }
    default:
      throw noFiles(join(place, 'type'), type, "'base64', 'text' or 'content'");
  }
}

function dataUrl(source: Fields, path: string, types: RegExp): string {
  const type = asText(required(source, 'media_type', path), join(path, 'media_type'));
  if (!types.test(type)) throw invalidField(join(path, 'media_type'), `'${quote(type)}' is not supported`);
  return `data:${type};base64,${asText(required(source, 'data', path), join(path, 'data'))}`;
}

function searchResult(fields: Fields, path: string): string {
  const title = asText(fields.title ?? '', join(path, 'title'));
  const from = asText(fields.source ?? '', join(path, 'source'));
  return [title, from, onlyText(required(fields, 'content', path), join(path, 'content'))]
    .filter((text) => text !== '')
    .join('\n');
}

function noFiles(path: string, type: string, supported: string) {
  return invalidField(path, `Input should be ${supported}, got '${quote(type)}': this server does not store or fetch files`);
}
