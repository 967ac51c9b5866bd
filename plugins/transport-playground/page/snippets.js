/**
 * @typedef {object} SnippetRequest
 * @property {string} base of the API, with a slash at its end
 * @property {string} agent
 * @property {readonly { role: string, content: string }[]} messages
 * @property {string} key of the session; empty for a request without one
 * @property {boolean} token whether the server requires one. It is written as `$PLUGBOARD_TOKEN`.
 */

/**
 * The request as code, in several languages.
 * @param {SnippetRequest} request @returns {{ id: string, label: string, text: string }[]}
 */
export function snippetsOf(request) {
  return [
    { id: 'curl', label: 'curl', text: curl(request) },
    { id: 'js', label: 'JavaScript', text: javascript(request) },
    { id: 'python', label: 'Python', text: python(request) },
    { id: 'wscat', label: 'wscat', text: wscat(request) },
  ];
}

/** @param {SnippetRequest} request */
function curl({ base, token, ...request }) {
  const lines = [
    `curl ${shell(`${base}v1/chat/completions`)}`,
    ...(token ? ['-H "Authorization: Bearer $PLUGBOARD_TOKEN"'] : []),
    "-H 'Content-Type: application/json'",
    `-d ${shell(JSON.stringify(body(request), null, 2))}`,
  ];
  return lines.join(' \\\n  ');
}

/** @param {SnippetRequest} request */
function javascript({ base, token, ...request }) {
  return [
    "import OpenAI from 'openai';",
    '',
    'const client = new OpenAI({',
    `  baseURL: ${JSON.stringify(`${base}v1`)},`,
    `  apiKey: ${token ? 'process.env.PLUGBOARD_TOKEN,' : "'none', // no token needed"}`,
    '});',
    `const completion = await client.chat.completions.create(${JSON.stringify(body(request), null, 2)});`,
    'console.log(completion.choices[0].message.content);',
  ].join('\n');
}

/** @param {SnippetRequest} request */
function python({ base, token, agent, messages, key }) {
  return [
    'import os',
    'from openai import OpenAI',
    '',
    'client = OpenAI(',
    `    base_url=${JSON.stringify(`${base}v1`)},`,
    `    api_key=${token ? 'os.environ["PLUGBOARD_TOKEN"],' : '"none",  # no token needed'}`,
    ')',
    'completion = client.chat.completions.create(',
    `    model=${JSON.stringify(agent)},`,
    `    messages=${JSON.stringify(messages, null, 4).replaceAll('\n', '\n    ')},`,
    ...(key === '' ? [] : [`    extra_body={"session_id": ${JSON.stringify(key)}},`]),
    ')',
    'print(completion.choices[0].message.content)',
  ].join('\n');
}

/** @param {SnippetRequest} request */
function wscat({ base, token, agent, messages, key }) {
  const input =
    key === '' ? messages.map(({ role, content }) => ({ type: 'message', role, content })) : (messages.at(-1)?.content ?? '');
  const create = { type: 'response.create', model: agent, ...(key === '' ? { store: false } : { conversation: key }), input };
  const lines = [
    `npx wscat -c ${shell(`${base.replace(/^http/, 'ws')}v1/live`)}`,
    ...(token ? ['-H "Authorization: Bearer $PLUGBOARD_TOKEN"'] : []),
    '-w 60',
    `-x ${shell(JSON.stringify(create))}`,
  ];
  return lines.join(' \\\n  ');
}

/** @param {Pick<SnippetRequest, 'agent' | 'messages' | 'key'>} request */
function body({ agent, messages, key }) {
  return { model: agent, messages, ...(key !== '' && { session_id: key }) };
}

/** A shell word without special characters. @param {string} text */
function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
