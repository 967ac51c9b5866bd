import { CONVERSATION_PREFIX } from '@plugboard/kernel/contracts';

/**
 * Prefixes of item ids: message; reasoning; agent tool call; decision about one; client tool call;
 * custom client tool call; outputs of the latter two.
 */
type ItemPrefix = 'msg' | 'rs' | 'mcp' | 'mcpar' | 'fc' | 'ctc' | 'fco' | 'ctco';

/** The position of an item. Its id is derived from it, and so never changes. */
export interface ItemPlace {
  /** The conversation id. */
  readonly conversation: string;
  /** From 1. */
  readonly turn: number;
  /** Index of the message in the turn, from 0. */
  readonly message: number;
  /** Index of the call in the message, from 0; absent for a message. */
  readonly call?: number | undefined;
}

export function itemId(prefix: ItemPrefix, { conversation, turn, message, call }: ItemPlace): string {
  const whole = `${prefix}_${conversation.slice(CONVERSATION_PREFIX.length)}_${turn}_${message}`;
  return call === undefined ? whole : `${whole}_${call}`;
}

const FORM = /^(?:msg|rs|mcp|mcpar|fc|ctc|fco|ctco)_([0-9a-f]{40})_([1-9]\d{0,8})_\d{1,6}(?:_\d{1,6})?$/;

/**
 * Parses an item id; undefined if it is malformed. The item found there must still be compared with
 * the id.
 */
export function parseItemId(id: string): Pick<ItemPlace, 'conversation' | 'turn'> | undefined {
  const [, digest, turn] = FORM.exec(id) ?? [];
  return digest === undefined ? undefined : { conversation: CONVERSATION_PREFIX + digest, turn: Number(turn) };
}

/**
 * Whether two ids name the same item. The prefix of a call changes when its tool is removed from
 * the configuration or added again.
 */
export function isSameItem(one: string, other: string): boolean {
  return one.replace(/^mcp_/, 'fc_') === other.replace(/^mcp_/, 'fc_');
}
