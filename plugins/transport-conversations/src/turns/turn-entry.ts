import { CONVERSATION_PREFIX, NO_USAGE, type TurnRecord, textOf } from '@plugboard/kernel/contracts';
import { outcomeOfFinish, turnFacts } from '@plugboard/open-responses';
import { itemId } from '../items/item-id.js';
import { type CallRecord, TurnIndex } from '../items/turn-index.js';
import type { ConversationTurn, ItemView } from '../items/turn-to-items.js';

/** Where a turn is: the id of its conversation, and its number. */
interface TurnPlace {
  readonly conversation: string;
  readonly turn: number;
}

function turnId({ conversation, turn }: TurnPlace): string {
  return `turn_${conversation.slice(CONVERSATION_PREFIX.length)}_${turn}`;
}

/** Parses the id of a turn; undefined if it is malformed. */
export function parseTurnId(id: string): TurnPlace | undefined {
  const [, digest, turn] = /^turn_([0-9a-f]{40})_([1-9]\d{0,8})$/.exec(id) ?? [];
  return digest === undefined ? undefined : { conversation: CONVERSATION_PREFIX + digest, turn: Number(turn) };
}

type Facts = ReturnType<typeof turnFacts>;

/** A turn as `GET /v1/conversations/{id}/turns` lists it. */
interface TurnEntry extends Omit<Facts, 'queued_ms'> {
  readonly id: string;
  readonly object: 'conversation.turn';
  readonly turn: number;
  readonly status: 'completed' | 'incomplete';
  readonly incomplete_details: { readonly reason: string } | null;
  readonly queued_ms: number | null;
}

/**
 * A turn of a conversation, and what happened in it. Shows of its calls and reasoning what its
 * items show. Of a turn without a record only its number is known.
 */
export function turnEntry({ turn, messages, record }: ConversationTurn, view: ItemView): TurnEntry {
  const { conversation, toolVisibility: visibility } = view;
  const id = turnId({ conversation, turn });
  if (!record) return { ...UNKNOWN, id, turn };
  const reason = incompleteReason(record);
  const index = new TurnIndex(messages, record);
  const facts = turnFacts(record, {
    visibility,
    itemOf: (call) => itemOf(call, index, { conversation, turn }),
    resultOf: (call) => resultOf(call, index),
  });
  return {
    id,
    object: 'conversation.turn',
    turn,
    ...facts,
    status: reason === undefined ? 'completed' : 'incomplete',
    incomplete_details: reason === undefined ? null : { reason },
  };
}

const UNKNOWN: Omit<TurnEntry, 'id' | 'turn'> = {
  object: 'conversation.turn',
  created_at: null,
  created_at_ms: null,
  status: 'completed',
  incomplete_details: null,
  queued_ms: null,
  duration_ms: null,
  usage: null,
  steps: [],
  calls: [],
  decisions: [],
};

/** The reason that the response of the turn gave; `shutdown` if the process died. */
function incompleteReason({ reason, limit, usage }: TurnRecord): string | undefined {
  if (reason === 'interrupted') return 'shutdown';
  if (reason === undefined || reason === 'failed') return undefined; // never stored
  return outcomeOfFinish({ type: 'finished', reason, limit, usage: usage ?? NO_USAGE }).reason;
}

/** The id of the item of a call: where it was made, or where its result is. */
function itemOf({ id, tool, state, approval }: CallRecord, index: TurnIndex, at: TurnPlace): string | null {
  if (state === 'waiting' && approval !== undefined) return approval;
  const place = index.placeOf(id);
  if (!place) return null;
  return itemId(tool || place.call === undefined ? 'mcp' : 'fc', { ...at, ...place });
}

function resultOf({ id }: CallRecord, index: TurnIndex): string | undefined {
  const found = index.anyResultOf(id);
  return found && textOf(found.content);
}
