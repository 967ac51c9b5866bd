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
 * Adds an item. A request for approval takes the place of the call that waits for it, and a call
 * that was approved the place of the request. @param {Turn} turn @param {TurnItem} item
 */
export function addItem({ items }, item) {
  const at = items.findIndex((one) => one.kind === 'tool' && item.kind === 'tool' && isSameCall(one, item));
  if (at < 0) items.push(item);
  else items[at] = item;
}

/**
 * Whether an item is the next one of a call. One that asks an agent stops when a call of that agent
 * needs approval: `research` and `research › desk/lookup`. @param {ToolItem} before @param
 * {ToolItem} item
 */
function isSameCall(before, item) {
  if (before.status === 'stopped') return item.status === 'waiting' && nameOf(item).startsWith(`${nameOf(before)} › `);
  return item.approvalId !== '' && before.approvalId === item.approvalId;
}

/** @param {Pick<ToolItem, 'server' | 'name'>} call */
export function nameOf({ server, name }) {
  return server === '' || server === name ? name : `${server}/${name}`;
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
