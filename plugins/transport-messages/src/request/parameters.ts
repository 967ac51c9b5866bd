import type { Target } from '@plugboard/kernel/contracts';
import { invalidField } from '../errors/messages-error.js';
import { asInteger, asList, asNumber, asObject, asText, asWord, type Fields, join, required } from './fields.js';
import type { Ignored } from './ignored.js';

const INT32 = 2 ** 31 - 1;
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const;

/** Fields that `parametersOf` or another reader reads, or that never change an answer. */
const KNOWN = new Set([
  ...['model', 'messages', 'system', 'max_tokens', 'stream', 'tools', 'tool_choice', 'metadata', 'thinking', 'cache_control'],
  ...['temperature', 'top_p', 'stop_sequences', 'output_config', 'output_format', 'thread'],
]);

/** Values that are the protocol's defaults: a field with one is not named as ignored. */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = {
  temperature: [1],
  top_p: [1],
  service_tier: ['auto', 'standard_only'],
  speed: ['standard'],
};

/**
 * The parameters of a request for its model calls, by their names at model connections. What the
 * target does not take is left out and named.
 *
 * @throws MessagesError 400 for a value out of range, or a form of the answer that no connection
 *   has.
 */
export function parametersOf(request: Fields, target: Target, ignored: Ignored): Readonly<Record<string, unknown>> {
  const params: Record<string, unknown> = {};
  const take = (field: string, name: string, value: unknown) => {
    if (target.forwardsParam(name)) params[name] = value;
    else if (!isDefault(field, value)) ignored.add(field);
  };
  take('max_tokens', 'max_completion_tokens', asInteger(required(request, 'max_tokens', ''), 'max_tokens', 1, INT32));
  if (request.temperature != null) take('temperature', 'temperature', asNumber(request.temperature, 'temperature', 0, 1));
  if (request.top_p != null) take('top_p', 'top_p', asNumber(request.top_p, 'top_p', 0, 1));
  const stop = request.stop_sequences == null ? [] : asList(request.stop_sequences, 'stop_sequences');
  const texts = stop.map((text, index) => asText(text, join('stop_sequences', index)));
  if (texts.length > 0) take('stop_sequences', 'stop', texts);
  outputOf(request, target, take, ignored);
  for (const [name, value] of Object.entries(request)) {
    if (!KNOWN.has(name) && value != null && !isDefault(name, value)) ignored.add(name);
  }
  return params;
}

/** Reads `output_config`, and `output_format`, which was its predecessor. */
function outputOf(
  request: Fields,
  target: Target,
  take: (field: string, name: string, value: unknown) => void,
  ignored: Ignored,
): void {
  const config = request.output_config == null ? {} : asObject(request.output_config, 'output_config');
  for (const [name, value] of Object.entries(config)) {
    if (name !== 'format' && name !== 'effort' && value != null) ignored.add(join('output_config', name));
  }
  if (config.effort != null) {
    take('output_config.effort', 'reasoning_effort', asWord(config.effort, 'output_config.effort', EFFORTS));
  }
  const path = config.format == null ? 'output_format' : 'output_config.format';
  const given = config.format ?? request.output_format;
  if (given == null) return;
  const format = asObject(given, path);
  asWord(required(format, 'type', path), join(path, 'type'), ['json_schema']);
  const schema = asObject(required(format, 'schema', path), join(path, 'schema'));
  if (!target.forwardsParam('response_format')) throw invalidField(path, 'The model of this agent has no structured output');
  take(path, 'response_format', { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } });
}

/** What becomes of the thinking. `omitted`: not shown, but kept for the model by the client. */
export function thinkingOf(request: Fields, ignored: Ignored): 'shown' | 'omitted' | 'off' {
  if (request.thinking == null) return 'off';
  const thinking = asObject(request.thinking, 'thinking');
  const type = asWord(required(thinking, 'type', 'thinking'), 'thinking.type', ['enabled', 'disabled', 'adaptive']);
  if (type === 'enabled') {
    asInteger(required(thinking, 'budget_tokens', 'thinking'), 'thinking.budget_tokens', 1, INT32);
    ignored.add('thinking.budget_tokens');
  }
  if (type === 'disabled') return 'off';
  return thinking.display === 'omitted' ? 'omitted' : 'shown';
}

function isDefault(field: string, value: unknown): boolean {
  return Object.hasOwn(DEFAULTS, field) && DEFAULTS[field]?.includes(value) === true;
}
