import { createHash } from 'node:crypto';
import { type Extra, parseJson } from '@plugboard/kernel/contracts';
import { isObject } from '../json/json.js';

type Fields = Readonly<Record<string, unknown>>;

/** The data that this plugin attaches to a tool call or a message (the `data` of an `Extra`). */
interface ConnectionData {
  /** The fingerprint of the model that made it: a connection may change its model. */
  readonly of: string;
  /** The server's own id of a tool call. */
  readonly id?: string;
  /** Members of the call or the message that the server expects back. */
  readonly fields?: Fields;
}

/** Identifies a model of a server in stored data. */
export function modelFingerprint(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);
}

/** Makes the data of a tool call or a message; undefined if there is nothing to keep. */
export function connectionData(fingerprint: string, fields: Fields, id?: string): ConnectionData | undefined {
  const hasFields = Object.keys(fields).length > 0;
  if (!hasFields && id === undefined) return undefined;
  return {
    of: fingerprint,
    ...(id === undefined ? {} : { id }),
    // What a server sent is copied without keys that would set a prototype.
    ...(hasFields ? { fields: parseJson(JSON.stringify(fields)) as Fields } : {}),
  };
}

/** Reads the data of an extra, if it was made by this model of this server. */
export function readConnectionData(extra: Extra | undefined, fingerprint: string): Omit<ConnectionData, 'of'> | undefined {
  const data = extra?.data;
  if (!isObject(data) || data.of !== fingerprint) return undefined;
  return {
    ...(typeof data.id === 'string' ? { id: data.id } : {}),
    ...(isObject(data.fields) ? { fields: data.fields } : {}),
  };
}
