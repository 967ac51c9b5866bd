/**
 * @typedef {object} CardTool a tool in an agent's list, or on its own
 * @property {string} entry
 * @property {string} name
 * @property {string} [summary] absent if the agent hides what its tools do
 * @property {string} [effect]
 * @property {boolean} [needs_approval]
 * @property {string | null} [description] of a tool on its own
 * @property {object | null} [input_schema] of a tool on its own
 */

/**
 * @typedef {object} AgentCard
 * @property {string} id
 * @property {string | null} description
 * @property {string[]} models
 * @property {string[]} input what they read: `text`, perhaps `image`
 * @property {'full' | 'names' | 'none'} tool_visibility
 * @property {CardTool[]} tools
 * @property {{ system: string | null, params: Record<string, unknown> }} [settings] for
 *   administrators
 */

/**
 * @typedef {{ content: string, images: string[], is_error: boolean, milliseconds: number }}
 * ToolResult
 */

/** @param {string} agent */
export function cardPath(agent) {
  return `v1/agents/${encodeURIComponent(agent)}`;
}

/**
 * Those of some agents that take text only, as far as the server says so.
 * @param {import('./playground.js').Playground} app @param {readonly string[]} agents
 */
export async function textOnly({ api, server }, agents) {
  if (!server.hasAgentCards) return [];
  const cards = await Promise.all(agents.map((agent) => api.get(cardPath(agent)).catch(() => undefined)));
  return agents.filter((_, at) => cards[at]?.input?.includes('image') === false);
}

/** @param {string} agent @param {CardTool} tool */
export function toolPath(agent, { entry, name }) {
  return `${cardPath(agent)}/tools/${encodeURIComponent(entry)}/${encodeURIComponent(name)}`;
}

/** Arguments to begin with: the required ones, empty. @param {object | null | undefined} schema */
export function skeletonOf(schema) {
  const { properties = {}, required = [] } = /** @type {Record<string, any>} */ (schema ?? {});
  const names = Array.isArray(required) ? required.slice(0, 50) : [];
  const entries = names.map((name) => [name, emptyOf(properties?.[name])]);
  return JSON.stringify(Object.fromEntries(entries), null, 2);
}

/** @param {Record<string, any> | undefined} schema */
function emptyOf(schema) {
  if (schema?.default !== undefined) return schema.default;
  if (Array.isArray(schema?.enum)) return schema.enum[0];
  return { string: '', number: 0, integer: 0, boolean: false, array: [], object: {} }[String(schema?.type)] ?? null;
}

/**
 * The arguments that a person typed.
 * @param {string} text @returns {{ value: object } | { problem: string }}
 */
export function argumentsIn(text) {
  try {
    const value = text.trim() === '' ? {} : JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value };
    return { problem: 'The arguments must be a JSON object, such as {"topic": "rain"}.' };
  } catch (error) {
    return { problem: `The arguments are not JSON. ${/** @type {Error} */ (error).message}` };
  }
}
