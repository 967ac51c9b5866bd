import {
  type Body,
  type Events,
  type Format,
  FUNCTION_NAME,
  formatOf,
  isRecord,
  listOf,
  type NativeAnswer,
  type NativeRequest,
  namedEvent,
  Refused,
  refuseCombination,
  refuseIf,
  refuseMedia,
} from './native-server.js';
import { sign } from './signatures.js';

export const OPENAI_KEY = 'sk-proj-0123456789abcdef0123456789abcdef';
export const OPENAI_MODEL = 'gpt-5.2';

export const AZURE_KEY = 'azure-0123456789abcdef0123456789abcdef';
export const XAI_KEY = 'xai-0123456789abcdef0123456789abcdef';
export const XAI_MODEL = 'grok-4.6';

/** What servers of the Responses API differ in. */
interface Service {
  readonly model: string;
  /** The header of the key, and how its values begin. */
  readonly header: 'authorization' | 'api-key';
  readonly keys: string;
  readonly badKey: Refused;
  readonly badModel: Refused;
  errorBody(error: Refused): object;
}

/** The Responses API: `POST /responses`. Encrypted reasoning belongs to the account. */
export const openaiResponses = responsesApi({
  model: OPENAI_MODEL,
  header: 'authorization',
  keys: 'Bearer sk-proj-',
  badKey: new Refused('Incorrect API key provided: sk-p****.', 401, 'invalid_api_key'),
  badModel: new Refused("The model 'claude-0' does not exist or you do not have access to it.", 404, 'model_not_found'),
  errorBody: ({ message, code }) => ({ error: { message, type: 'invalid_request_error', param: null, code: code || null } }),
});

/** Azure: the model is the name of a deployment. */
export const azure = responsesApi({
  model: OPENAI_MODEL,
  header: 'api-key',
  keys: 'azure-',
  badKey: new Refused('Access denied due to invalid subscription key or wrong API endpoint.', 401, '401'),
  badModel: new Refused('The API deployment for this resource does not exist.', 404, 'DeploymentNotFound'),
  errorBody: ({ message, code }) => ({ error: { code: code || 'invalid_request_error', message } }),
});

export const xai = responsesApi({
  model: XAI_MODEL,
  header: 'authorization',
  keys: 'Bearer xai-',
  badKey: new Refused('Incorrect API key provided: wr***89. You can obtain an API key from https://console.x.ai.'),
  badModel: new Refused('The model claude-0 does not exist or your team does not have access to it.', 404, 'not-found'),
  errorBody: ({ message, code }) => ({ code: code || 'Client specified an invalid argument', error: message }),
});

function responsesApi(service: Service): Format {
  let sequence_number = 0;
  return formatOf({
    check: (request) => check(request, service),
    events: (answer, request) => events(answer, request, service),
    frame: (event: Body) => namedEvent({ ...event, sequence_number: sequence_number++ }),
    errorBody: service.errorBody,
  });
}

function check({ headers, body }: NativeRequest, { model, header, keys, badKey, badModel }: Service): void {
  const account = String(headers[header]);
  if (!account.startsWith(keys)) throw badKey;
  if (body.model !== model) throw badModel;
  refuseMedia(body);
  refuseIf(model === XAI_MODEL && /image\/(gif|webp)/.test(JSON.stringify(body)), 'Unsupported image format.');
  for (const { name, parameters } of listOf(body.tools)) {
    refuseIf(!FUNCTION_NAME.test(String(name)), "Invalid 'tools[0].name': string does not match pattern.");
    refuseCombination(parameters, `Invalid schema for function '${name}'`);
    refuseIf(
      !isRecord(parameters) || !isRecord(parameters.properties),
      `Invalid schema for function '${name}': object schema missing properties.`,
    );
  }
  const input = listOf(body.input);
  refuseIf(input.length === 0, 'One of "input" or "previous_response_id" must be provided.');
  const open = new Set<unknown>();
  for (const [index, item] of input.entries()) {
    if (item.type === 'item_reference')
      throw new Refused(`Item with id '${item.id}' not found. Items are not persisted when \`store\` is set to false.`, 404);
    if (item.type === 'function_call') {
      refuseIf(!FUNCTION_NAME.test(String(item.name)), `Invalid 'input[${index}].name': string does not match pattern.`);
      // Calls that this model made after a thought have their ids, and then need it.
      const isBare = input.slice(0, index).findLast(({ type }) => type !== 'function_call')?.type !== 'reasoning';
      refuseIf(
        String(item.id).startsWith('fc_r') && isBare,
        `Item '${item.id}' of type 'function_call' was provided without its required 'reasoning' item.`,
      );
      refuseIf(
        model !== XAI_MODEL && item.id !== undefined && !String(item.id).startsWith('fc'),
        `Invalid 'input[${index}].id': Expected an ID that begins with 'fc'.`,
      );
      refuseIf(String(item.call_id).length > 64, `Invalid 'input[${index}].call_id': string too long.`);
      open.add(item.call_id);
    }
    if (item.type === 'function_call_output')
      refuseIf(!open.delete(item.call_id), `No tool call found for function call output with call_id ${item.call_id}.`);
    if (item.type === 'reasoning') {
      refuseIf(
        item.encrypted_content !== sign(account, model, '', ''),
        `The encrypted content for item ${item.id} could not be verified.`,
      );
      const next = input[index + 1];
      const isFollowed = next?.type === 'reasoning' || next?.type === 'function_call' || next?.role === 'assistant';
      refuseIf(!isFollowed, `Item '${item.id}' of type 'reasoning' was provided without its required following item.`);
    }
  }
  for (const id of open) throw new Refused(`No tool output found for function call ${id}.`);
}

function* events(answer: NativeAnswer, { headers, body }: NativeRequest, { model, header }: Service): Events<Body> {
  const response = { id: 'resp_1', object: 'response', created_at: 1_700_000_000, model, output: [] };
  yield { type: 'response.created', response };
  let output_index = 0;
  for (const text of answer.thinking ?? []) {
    const id = `rs_${output_index}`;
    // Reasoning is stored at the provider, or encrypted for those who ask for it.
    const isAsked = Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content');
    const encrypted_content = isAsked ? sign(String(headers[header]), model, '', '') : null;
    yield {
      type: 'response.output_item.added',
      output_index,
      item: { id, type: 'reasoning', status: 'in_progress', summary: [], encrypted_content: 'partial' },
    };
    yield {
      type: 'response.reasoning_summary_part.added',
      item_id: id,
      output_index,
      summary_index: 0,
      part: { type: 'summary_text', text: '' },
    };
    yield { type: 'response.reasoning_summary_text.delta', item_id: id, output_index, summary_index: 0, delta: text };
    yield {
      type: 'response.reasoning_summary_part.done',
      item_id: id,
      output_index,
      summary_index: 0,
      part: { type: 'summary_text', text },
    };
    const item = { id, type: 'reasoning', status: 'completed', summary: [{ type: 'summary_text', text }], encrypted_content };
    yield { type: 'response.output_item.done', output_index: output_index++, item };
  }
  if (answer.text) {
    const id = `msg_${output_index}`;
    const item = { id, type: 'message', role: 'assistant', status: 'in_progress', content: [] };
    yield { type: 'response.output_item.added', output_index, item };
    for (const delta of answer.text)
      yield typeof delta === 'function'
        ? delta
        : { type: 'response.output_text.delta', item_id: id, output_index, content_index: 0, delta };
    const content = [{ type: 'output_text', text: answer.text.join(''), annotations: [] }];
    yield { type: 'response.output_item.done', output_index: output_index++, item: { ...item, status: 'completed', content } };
  }
  for (const [number, { id = `call_${number + 1}`, name, input }] of (answer.calls ?? []).entries()) {
    const item = {
      id: `fc_${answer.thinking ? 'r' : ''}${output_index}`,
      type: 'function_call',
      call_id: id,
      name,
      arguments: '',
      status: 'in_progress',
    };
    yield { type: 'response.output_item.added', output_index, item };
    for (const delta of JSON.stringify(input).match(/.{1,7}/gs) ?? [])
      yield { type: 'response.function_call_arguments.delta', item_id: item.id, output_index, delta };
    yield {
      type: 'response.output_item.done',
      output_index: output_index++,
      item: { ...item, arguments: JSON.stringify(input), status: 'completed' },
    };
  }
  if (answer.finish === null) return;
  const [prompt, cached, tokens, thoughts] = answer.usage ?? [10, 0, 5, 0];
  const usage = {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: tokens,
    output_tokens_details: { reasoning_tokens: thoughts },
    total_tokens: prompt + tokens,
  };
  const incomplete = answer.finish === undefined ? null : { reason: answer.finish };
  yield {
    type: incomplete ? 'response.incomplete' : 'response.completed',
    response: { ...response, status: incomplete ? 'incomplete' : 'completed', incomplete_details: incomplete, usage },
  };
}
