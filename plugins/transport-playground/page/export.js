/** @typedef {import('./sessions.js').Session} Session */
/** @typedef {Record<string, any> & { type: string }} Item an item, as the API returns it */

/** Items of one request. */
const PAGE = 100;

/** Maximum length of a file's name, without its ending. */
const MAX_NAME = 60;

/**
 * Downloads a session with its whole history.
 * @param {import('./api.js').Api} api @param {Session} listed @param {string} title
 * @param {'json' | 'md'} format @throws {ApiError}
 */
export async function exportSession(api, listed, title, format) {
  const path = `v1/conversations/${encodeURIComponent(listed.id)}`;
  const session = await api.get(path); // it may have changed since it was listed
  const items = await allItems(api, path);
  const text = format === 'json' ? `${JSON.stringify({ ...session, items }, null, 2)}\n` : markdownOf(session, title, items);
  const type = format === 'json' ? 'application/json' : 'text/markdown';
  download(new Blob([text], { type }), `${fileName(title) || 'session'}.${format}`);
}

/**
 * @param {import('./api.js').Api} api @param {string} path of the session @returns
 * {Promise<Item[]>}
 */
async function allItems(api, path) {
  const items = [];
  for (let after = ''; ; ) {
    const { data, has_more, last_id } = await api.get(`${path}/items?order=asc&limit=${PAGE}${after}`);
    items.push(...data);
    if (!has_more) return items;
    after = `&after=${encodeURIComponent(last_id)}`;
  }
}

/**
 * A title as a file name: letters, digits and single hyphens, whatever the title contains. @param
 * {string} title
 */
export function fileName(title) {
  const words = title.normalize('NFC').split(/[^\p{L}\p{M}\p{N}]+/u);
  return Array.from(words.filter((word) => word !== '').join('-'))
    .slice(0, MAX_NAME)
    .join('');
}

/** @param {Session} session @param {string} title @param {Item[]} items */
export function markdownOf(session, title, items) {
  const { agent, key, created_at } = session;
  const facts = `Agent ${inline(agent)}, session ${inline(key)}, begun ${new Date(created_at * 1000).toISOString()}`;
  return `${[`# ${escaped(title)}`, facts, ...items.flatMap(sectionsOf)].join('\n\n')}\n`;
}

/** @param {Item} item @returns {string[]} */
function sectionsOf(item) {
  const { type, role, name, output } = item;
  switch (type) {
    case 'message':
      return [role === 'user' ? '## User' : '## Agent', textOf(item.content)];
    case 'mcp_call':
      return [
        `### Tool ${inline(`${item.server_label ?? ''}/${name ?? ''}`)}`,
        ...block('Arguments', item.arguments, 'json'),
        ...block(item.status === 'failed' || item.error ? 'Error' : 'Result', output ?? errorText(item.error)),
      ];
    case 'function_call':
      return [`### Function ${inline(String(name))}`, ...block('Arguments', item.arguments, 'json')];
    case 'function_call_output':
      return block('Result of the function', typeof output === 'string' ? output : JSON.stringify(output));
    case 'mcp_approval_request':
      return [`### Approval asked for ${inline(String(name))}`, ...block('Arguments', item.arguments, 'json')];
    case 'mcp_approval_response':
      return [`### ${item.approve ? 'Approved' : 'Denied'}${item.reason ? `: ${escaped(item.reason)}` : ''}`];
    case 'reasoning':
      return block('Reasoning', textOf(item.summary));
    default:
      return block(type, JSON.stringify(item, null, 2), 'json');
  }
}

/** @param {unknown} error */
function errorText(error) {
  return typeof error === 'string' || error == null ? error : JSON.stringify(error);
}

/** @param {unknown} content text, or parts */
function textOf(content) {
  if (!Array.isArray(content)) return String(content ?? '');
  return content.map((part) => part.text ?? part.refusal ?? `[${String(part.type).replace('input_', '')}]`).join('\n\n');
}

/**
 * A text in a fence that it cannot close. @param {string} label @param {unknown} text @param
 * {string} [language]
 */
function block(label, text, language = '') {
  if (typeof text !== 'string' || text === '') return [];
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return [`${label}:`, `${fence}${language}\n${text}\n${fence}`];
}

/** @param {string} text */
function inline(text) {
  return escaped(text.replace(/\s+/g, ' '));
}

/** Text that Markdown shows as it is. @param {string} text */
function escaped(text) {
  return text.replace(/[\\`*_{}[\]<>#|~&!]/g, '\\$&');
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // some browsers read it later
}
