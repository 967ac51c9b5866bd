/** The tools: one for each way in which a call can be settled, and one that has none. */
export const ENTRIES = ['keyed', 'plain', 'verified'] as const;
export type Entry = (typeof ENTRIES)[number];

const YAML = `
transports: { http: { port: 0 }, chat-completions: {} }
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, contextWindow: 10000000 } }
tools:
  keyed: { use: http, openapi: ./keyed.json, baseUrl: "\${MAIL_URL}", timeout: 1s }
  plain: { use: http, openapi: ./plain.json, baseUrl: "\${MAIL_URL}", timeout: 1s }
  verified: { use: ./verified.mjs, timeout: 1s }
agents:
  keyed: { model: fast, tools: [keyed], onRestart: keep-input }
  plain: { model: fast, tools: [plain] }
  verified: { model: fast, tools: [verified] }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

/** The API of the mail server. @param parameters of the operation. */
function documentOf(path: string, parameters: readonly object[]): string {
  const schema = { type: 'object', properties: { subject: { type: 'string' } }, required: ['subject'] };
  const requestBody = { required: true, content: { 'application/json': { schema } } };
  const paths = { [path]: { post: { operationId: 'send', parameters, requestBody } } };
  return JSON.stringify({ openapi: '3.1.0', info: { title: 'Mail', version: '1' }, paths });
}

/**
 * Where a process can kill itself: before or after an operation of its store. `DIE_AFTER` says how
 * many are let through.
 */
export const POINTS = [
  'before state.change',
  'after state.change',
  'before commit',
  'after commit',
  'before approvals.replace',
  'after approvals.replace',
  'after begin',
] as const;

/** A plugin with a tool that verifies, which kills its own process where the environment says. */
const PLUGIN = `
  import { subscribe } from 'node:diagnostics_channel';
  import { definePlugin, ToolSources } from '@plugboard/kernel';

  const { DIE_AT, DIE_AFTER, MAIL_URL } = process.env;
  let left = Number(DIE_AFTER);
  const pass = (point) => {
    if (point === DIE_AT && left-- === 0) process.kill(process.pid, 'SIGKILL');
  };
  subscribe('tracing:plugboard.store:start', ({ operation }) => pass('before ' + operation));
  subscribe('tracing:plugboard.store:asyncEnd', ({ operation }) => pass('after ' + operation));

  const url = MAIL_URL + '/verified';
  const lost = (cause) => Object.assign(new Error('the connection broke', { cause }), { effect: 'unknown' });
  const send = {
    name: 'send',
    description: 'Sends a mail.',
    effect: 'write',
    inputSchema: { type: 'object', properties: { subject: { type: 'string' } }, required: ['subject'] },
    run: ({ subject }, { turnId, index, signal }) =>
      fetch(url, {
        method: 'POST',
        headers: { 'idempotency-key': turnId + '/' + index },
        body: JSON.stringify({ subject }),
        signal,
      })
        .then((response) => response.text())
        .catch((error) => {
          throw lost(error);
        }),
    verify: async (key, { signal }) => {
      const known = await fetch(url + '?key=' + encodeURIComponent(key), { signal });
      return (await known.text()) === 'sent' ? 'sent' : undefined;
    },
  };
  const tools = [send];
  export default definePlugin({
    name: 'verified', apiVersion: 1, summary: 'Sends mail', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => tools }),
  });
`;

const KEY = { name: 'Idempotency-Key', in: 'header', schema: { type: 'string' } };

/** The folder of the server. */
export const FILES = {
  'package.json': '{ "type": "module" }',
  'plugboard.yaml': YAML,
  'keyed.json': documentOf('/keyed', [KEY]),
  'plain.json': documentOf('/plain', []),
  'verified.mjs': PLUGIN,
};
