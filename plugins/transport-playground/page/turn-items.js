/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').ToolItem} ToolItem */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./turn.js').TurnItem} TurnItem */

/**
 * An item of the protocol as the page shows it; undefined if it does not.
 * @param {ProtocolEvent} item @returns {TurnItem | undefined}
 */
export function itemFrom(item) {
  const { type, id = '', error } = item;
  if (type === 'message') return { kind: 'text', id, text: textOf(item.content) };
  if (type === 'reasoning') return { kind: 'reasoning', id, text: textOf(item.summary) };
  if (!['mcp_call', 'mcp_approval_request', 'function_call', 'custom_tool_call'].includes(type)) return undefined;
  return {
    kind: 'tool',
    id,
    server: item.server_label ?? '',
    name: item.name,
    arguments: item.arguments ?? item.input ?? '',
    output: item.output ?? null,
    error: error ? textOf(error.content) || error.message || JSON.stringify(error) : null,
    status: statusOf(item),
    isOurs: !type.startsWith('mcp_'),
    approvalId: type === 'mcp_approval_request' ? id : (item.approval_request_id ?? ''),
    callId: item.call_id ?? '',
    ms: undefined,
    progress: '',
  };
}
/**
 * Adds an item. A call that was approved takes the place of the request for approval. @param {Turn}
 * turn @param {TurnItem} item
 */
export function addItem({ items }, item) {
  const asked = (/** @type {TurnItem} */ one) =>
    item.kind === 'tool' && item.approvalId !== '' && isAskedBy(one, item.approvalId);
  const at = items.findIndex(asked);
  if (at < 0) items.push(item);
  else items[at] = item;
}

/** @param {TurnItem} item @param {string} approvalId */
function isAskedBy(item, approvalId) {
  return item.kind === 'tool' && item.approvalId === approvalId;
}
/** @param {ProtocolEvent} item @returns {ToolItem['status']} */
function statusOf({ type, status, error }) {
  if (type === 'mcp_approval_request' || status === 'waiting') return 'waiting';
  if (error || status === 'failed') return 'failed';
  if (status === 'in_progress') return 'running';
  return status === 'incomplete' ? 'stopped' : 'ok';
}

/** The text of an item's parts. @param {unknown} parts */
export function textOf(parts) {
  if (!Array.isArray(parts)) return typeof parts === 'string' ? parts : '';
  return parts.map(({ text, refusal }) => text ?? refusal ?? '').join('');
}
