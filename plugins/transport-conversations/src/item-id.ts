import { CONVERSATION_PREFIX } from '@plugboard/kernel';

/** What begins an item's id: a message; a call of an agent's tool, of a caller's, of a caller's custom one; the outputs of the latter two. */
export type ItemPrefix = 'msg' | 'mcp' | 'fc' | 'ctc' | 'fco' | 'ctco';

/** Where an item comes from: its id says it, and so is always the same. */
export interface ItemPlace {
  /** The opaque id. */
  readonly conversation: string;
  /** From 1. */
  readonly turn: number;
  /** The message within the turn, from 0. */
  readonly message: number;
  /** Which of the message's calls, from 0; absent for what is a whole message. */
  readonly call?: number | undefined;
}

export function itemId(prefix: ItemPrefix, { conversation, turn, message, call }: ItemPlace): string {
  const whole = `${prefix}_${conversation.slice(CONVERSATION_PREFIX.length)}_${turn}_${message}`;
  return call === undefined ? whole : `${whole}_${call}`;
}

const FORM = /^(?:msg|mcp|fc|ctc|fco|ctco)_([0-9a-f]{40})_([1-9]\d{0,8})_\d{1,6}(?:_\d{1,6})?$/;

/** Where to look for the item that an id names; undefined for what is no id of an item. Only an item that has the id is meant by it. */
export function whereabouts(id: string): Pick<ItemPlace, 'conversation' | 'turn'> | undefined {
  const [, digest, turn] = FORM.exec(id) ?? [];
  return digest === undefined ? undefined : { conversation: CONVERSATION_PREFIX + digest, turn: Number(turn) };
}

/** Whether two ids name the same item. A call's prefix changes when the tool is taken out of the configuration, or put back. */
export function isSameItem(one: string, other: string): boolean {
  return one.replace(/^mcp_/, 'fc_') === other.replace(/^mcp_/, 'fc_');
}
