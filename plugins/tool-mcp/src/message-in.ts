import { ErrorCode, type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';

/**
 * The message that a line holds, or undefined where it holds none. An answer with a number but of no form that is known becomes a refusal of
 * that number, so that whoever waits for it does not wait in vain.
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
  const error = { code: ErrorCode.InternalError, message: 'the MCP server answered with what is no JSON-RPC answer' };
  return { jsonrpc: '2.0', id: value.id, error };
}
