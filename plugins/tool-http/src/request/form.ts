import { type Fields, fieldsOf, textOf } from '../document/fields.js';
import { queryText, type Style } from './styles.js';

/**
 * Writes an object as `application/x-www-form-urlencoded`. A list repeats its field; an object is
 * JSON, unless its encoding has a style.
 *
 * @param encoding the Encoding Objects of the fields.
 */
export function formText(value: unknown, encoding: Fields): string {
  return Object.entries(fieldsOf(value))
    .filter(([, item]) => item !== null && item !== undefined)
    .map(([name, item]) =>
      queryText(styleOf(name, fieldsOf(Object.hasOwn(encoding, name) ? encoding[name] : undefined), item), item),
    )
    .filter((pairs) => pairs !== '')
    .join('&');
}

function styleOf(name: string, encoding: Fields, value: unknown): Style {
  const isStyled = ['style', 'explode', 'allowReserved'].some((key) => encoding[key] !== undefined);
  const style = textOf(encoding.style) ?? 'form';
  const isObject = typeof value === 'object' && !Array.isArray(value);
  return {
    name,
    style,
    explode: typeof encoding.explode === 'boolean' ? encoding.explode : style === 'form' || style === 'deepObject',
    allowReserved: encoding.allowReserved === true,
    mediaType: isStyled ? undefined : (textOf(encoding.contentType) ?? (isObject ? 'application/json' : undefined)),
  };
}
