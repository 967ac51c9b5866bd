import { type JSONRPCMessage, ProtocolErrorCode, parseJSONRPCMessage } from '@modelcontextprotocol/client';
import { Account } from '@plugboard/kernel/contracts';

/** Maximum size of one message, in bytes. */
const MAX_MESSAGE_BYTES = 16 * 2 ** 20;
/** Bytes of the largest chunk of a pipe or socket. */
const CHUNK = 65_536;

/** Bytes of the largest message: no more than the account may hold. */
export function messageLimit(account: Account, maximum = MAX_MESSAGE_BYTES): number {
  return Math.min(maximum, Math.floor(account.limit / Account.costOf(1)) - CHUNK);
}

/** Says that a message was larger. */
export function tooLarge(limit: number): string {
  return `the result is larger than ${limit / 2 ** 20} MiB and was not read; ask for less of it`;
}

/**
 * Parses a line; undefined if it is not a message. An answer with an id but in an unknown form
 * becomes an error with that id, so that the request does not wait for its time limit.
 */
export function messageIn(line: string): JSONRPCMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  try {
    return parseJSONRPCMessage(value);
  } catch {
    return unreadableAnswer(value);
  }
}

function unreadableAnswer(value: unknown): JSONRPCMessage | undefined {
  if (typeof value !== 'object' || value === null || !('id' in value) || 'method' in value) return undefined;
  if (typeof value.id !== 'number' && typeof value.id !== 'string') return undefined;
  const error = { code: ProtocolErrorCode.InternalError, message: 'the MCP server sent an invalid JSON-RPC answer' };
  return { jsonrpc: '2.0', id: value.id, error };
}

/** The id of an answer, before what it answers, or behind it: programs write either. */
const BEGINNING = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,/;
const END = /"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/**
 * The answer that takes the place of one that is too long to be read. Undefined if the call that it
 * answers is not known.
 *
 * @param limit bytes.
 */
export function errorForCut(beginning: string, end: string, limit: number): JSONRPCMessage | undefined {
  const [, id] = BEGINNING.exec(beginning) ?? END.exec(end) ?? [];
  if (id === undefined) return undefined;
  return { jsonrpc: '2.0', id: Number(id), error: { code: ProtocolErrorCode.InternalError, message: tooLarge(limit) } };
}
