import { createHash } from 'node:crypto';
import type { SharedV4ProviderOptions } from '@ai-sdk/provider';
import { type Extra, parseJson } from '@plugboard/kernel/contracts';
import { isObject } from '../json/json.js';

/** What a provider attached to a part of its answer, which goes back with it (AI-6). */
export type PartOptions = SharedV4ProviderOptions;

/** A part of an answer, in its order (AI-7). Text and calls are those of the message. */
export type AnswerPart =
  | { readonly type: 'reasoning'; readonly text: string; readonly options?: PartOptions }
  /** The next characters of the message's text. */
  | { readonly type: 'text'; readonly length: number; readonly options?: PartOptions }
  /** The call with this id at the provider. */
  | { readonly type: 'call'; readonly id: string };

/** The data that this plugin attaches to a message (the `data` of an `Extra`). */
export interface MessageData {
  /** The fingerprint of the model and the account that answered (AI-9). */
  readonly of: string;
  readonly parts: readonly AnswerPart[];
}

/** The data that this plugin attaches to a tool call. */
export interface CallData {
  readonly of: string;
  /** The id of the call at the provider. */
  readonly id: string;
  readonly options?: PartOptions;
}

/** Identifies a model of an account in stored data. The key cannot be derived from it. */
export function modelFingerprint(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);
}

/** Copies what a provider sent, without keys that would set a prototype. */
export function stored<T>(value: T): T {
  return parseJson(JSON.stringify(value)) as T;
}

/** Reads the data of a message, if this model of this account made it. */
export function readMessageData(extra: Extra | undefined, fingerprint: string): MessageData | undefined {
  const data = own(extra, fingerprint);
  return data && Array.isArray(data.parts) ? (data as unknown as MessageData) : undefined;
}

/** Reads the data of a call, if this model of this account made it. */
export function readCallData(extra: Extra | undefined, fingerprint: string): CallData | undefined {
  const data = own(extra, fingerprint);
  return data && typeof data.id === 'string' ? (data as unknown as CallData) : undefined;
}

function own(extra: Extra | undefined, fingerprint: string): Readonly<Record<string, unknown>> | undefined {
  const data = extra?.data;
  return isObject(data) && data.of === fingerprint ? data : undefined;
}
