import { ErrorCode, type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';

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
  const message = JSONRPCMessageSchema.safeParse(value);
  if (message.success) return message.data;
  if (typeof value !== 'object' || value === null || !('id' in value) || 'method' in value) return undefined;
  if (typeof value.id !== 'number' && typeof value.id !== 'string') return undefined;
  const error = { code: ErrorCode.InternalError, message: 'the MCP server sent an invalid JSON-RPC answer' };
  return { jsonrpc: '2.0', id: value.id, error };
}
