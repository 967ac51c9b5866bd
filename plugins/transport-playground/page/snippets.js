import { chatFields, responsesFields, trialOf } from './trial.js';
import { messagesOf } from './turn-messages.js';

/** @typedef {'curl' | 'js' | 'python' | 'wscat'} Language */
/** @typedef {'chat' | 'responses'} Surface an API: chat completions or Responses */

/**
 * @typedef {object} SnippetRequest
 * @property {string} base of the API, with a slash at its end
 * @property {string} agent
 * @property {readonly { role: string, content: unknown }[]} messages
 * @property {import('./trial.js').Trial} trial the prompt and parameters that are tried
 * @property {string} key of the session; empty for a request without one
 * @property {boolean} token whether the server requires one. It is written as `$PLUGBOARD_TOKEN`.
 * @property {Surface} surface
 * @property {boolean} stream
 */

/** @type {readonly { id: Language, label: string }[]} */
export const LANGUAGES = [
  { id: 'curl', label: 'curl' },
  { id: 'js', label: 'JavaScript' },
  { id: 'python', label: 'Python' },
  { id: 'wscat', label: 'wscat' },
];

/**
 * The request that the snippets show: the draft of a conversation, or else its last message.
 * @param {import('./conversation.js').Conversation} chat
 */
export function requestOf(chat) {
  const { agent, turns, isStateless, sessionKey: key, draft } = chat;
  const last = turns.at(-1);
  const isNew = draft.trim() !== '' || !last;
  const input = isNew ? draft.trim() || 'Hello' : last.input;
  const earlier = (isNew ? turns : turns.slice(0, -1)).map((turn) => ({ ...turn, images: [] })); // they would be too long
  const message = { role: 'user', content: input };
  return { agent, key, trial: trialOf(chat), messages: isStateless ? [...messagesOf(earlier), message] : [message] };
}

/**
 * The request as a program. @param {Language} language @param {SnippetRequest} request @returns
 * {string}
 */
export function snippetOf(language, request) {
  return { curl, js: javascript, python, wscat }[language](request);
}

/** @param {SnippetRequest} request */
function curl(request) {
  const { base, token, surface, stream } = request;
  const lines = [
    `curl ${stream ? '-N ' : ''}${shell(`${base}v1/${surface === 'chat' ? 'chat/completions' : 'responses'}`)}`,
    ...(token ? ['-H "Authorization: Bearer $PLUGBOARD_TOKEN"'] : []),
    "-H 'Content-Type: application/json'",
    `-d ${shell(JSON.stringify(bodyOf(request), null, 2))}`,
  ];
  return lines.join(' \\\n  ');
}

/** @param {SnippetRequest} request */
function javascript(request) {
  const { base, token, surface, stream } = request;
  const [method, result, text] =
    surface === 'chat'
      ? ['chat.completions.create', 'completion', 'completion.choices[0].message.content']
      : ['responses.create', 'response', 'response.output_text'];
  const call = `await client.${method}(${JSON.stringify(bodyOf(request), null, 2)});`;
  const streamed =
    surface === 'chat'
      ? ["  process.stdout.write(event.choices[0]?.delta.content ?? '');"]
      : ["  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta);"];
  return [
    "import OpenAI from 'openai';",
    '',
    'const client = new OpenAI({',
    `  baseURL: ${JSON.stringify(`${base}v1`)},`,
    `  apiKey: ${token ? 'process.env.PLUGBOARD_TOKEN,' : "'none', // no token needed"}`,
    '});',
    ...(stream
      ? [`const stream = ${call}`, 'for await (const event of stream) {', ...streamed, '}']
      : [`const ${result} = ${call}`, `console.log(${text});`]),
  ].join('\n');
}

/** @param {SnippetRequest} request */
function python(request) {
  const { base, token, surface, stream } = request;
  const { session_id, ...fields } = bodyOf(request); // a field that the SDK does not know
  const [method, result, text] =
    surface === 'chat'
      ? ['chat.completions.create', 'completion', 'completion.choices[0].message.content']
      : ['responses.create', 'response', 'response.output_text'];
  const streamed =
    surface === 'chat'
      ? ['    if event.choices:', '        print(event.choices[0].delta.content or "", end="", flush=True)']
      : ['    if event.type == "response.output_text.delta":', '        print(event.delta, end="", flush=True)'];
  return [
    'import os',
    'from openai import OpenAI',
    '',
    'client = OpenAI(',
    `    base_url=${JSON.stringify(`${base}v1`)},`,
    `    api_key=${token ? 'os.environ["PLUGBOARD_TOKEN"],' : '"none",  # no token needed'}`,
    ')',
    `${stream ? 'stream' : result} = client.${method}(`,
    ...Object.entries(fields).map(([name, value]) => `    ${name}=${pythonValue(value)},`),
    ...(session_id === undefined ? [] : [`    extra_body={"session_id": ${pythonValue(session_id)}},`]),
    ')',
    ...(stream ? ['for event in stream:', ...streamed] : [`print(${text})`]),
  ].join('\n');
}

/** A JSON value in Python, behind an indentation of four spaces. @param {unknown} value */
function pythonValue(value) {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return JSON.stringify(value, null, 4).replaceAll('\n', '\n    ');
}

/** @param {SnippetRequest} request */
function wscat(request) {
  const { base, token } = request;
  const { stream: _, ...create } = bodyOf({ ...request, surface: 'responses' });
  const lines = [
    `npx wscat -c ${shell(`${base.replace(/^http/, 'ws')}v1/live`)}`,
    ...(token ? ['-H "Authorization: Bearer $PLUGBOARD_TOKEN"'] : []),
    '-w 60',
    `-x ${shell(JSON.stringify({ type: 'response.create', ...create }))}`,
  ];
  return lines.join(' \\\n  ');
}

/** The body of the request. @param {SnippetRequest} request @returns {Record<string, unknown>} */
function bodyOf({ agent, messages, trial, key, surface, stream }) {
  const flow = stream ? { stream } : {};
  const session = key !== '';
  if (surface === 'chat')
    return { model: agent, ...chatFields(trial, [...messages]), ...(session && { session_id: key }), ...flow };
  const { reasoning, ...tried } = responsesFields(trial);
  const fields = { ...tried, ...(trial.effort !== '' && { reasoning: { effort: trial.effort } }) };
  if (session) return { model: agent, ...fields, conversation: key, input: messages.at(-1)?.content ?? '', ...flow };
  return { model: agent, ...fields, store: false, input: messages.map((message) => ({ type: 'message', ...message })), ...flow };
}

/** A shell word without special characters. @param {string} text */
function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
