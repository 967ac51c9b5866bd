import { type Fields, isObject } from '../json/json.js';

/** What an event of a provider says about its message. */
interface Sign {
  /** The id of the message. */
  readonly id?: unknown;
  readonly starts?: boolean;
  readonly speaks?: boolean;
  readonly ends?: boolean;
}

/**
 * Notices answers that are more than one message, because something between the provider and this
 * server splices or repeats streams. Most packages read on, as if it were one message (AI-15).
 */
export class MessageGuard {
  #id: unknown;
  /** Events with this id. Ids that change with each event mean nothing. */
  #count = 0;
  #hasStarted = false;
  #hasEnded = false;

  /** @returns whether another message begins with this event. */
  isAnother(event: unknown): boolean {
    const { id, starts = false, speaks = false, ends = false } = isObject(event) ? signOf(event) : {};
    const isOther = id !== undefined && id !== this.#id && this.#count > 1;
    const isAnother = isOther || (starts && this.#hasStarted) || ((starts || speaks) && this.#hasEnded);
    this.#count = id === this.#id ? this.#count + 1 : 1;
    this.#id = id;
    this.#hasStarted ||= starts;
    this.#hasEnded ||= ends;
    return isAnother;
  }
}

/** Reads the events of the Responses API, Converse, Gemini and chat completions. */
function signOf(event: Fields): Sign {
  const { type } = event;
  if (typeof type === 'string') {
    if (!type.startsWith('response.')) return {};
    const ends = /^response\.(completed|incomplete|done)$/.test(type);
    return { starts: type === 'response.created', speaks: type.endsWith('.delta'), ends };
  }
  if (Array.isArray(event.candidates)) {
    const candidate = firstOf(event.candidates);
    const parts: unknown = isObject(candidate.content) ? candidate.content.parts : undefined;
    return { id: event.responseId, speaks: Array.isArray(parts) && parts.some(speaks), ends: isText(candidate.finishReason) };
  }
  if (Array.isArray(event.choices)) {
    const { delta, finish_reason: reason } = firstOf(event.choices);
    return { id: event.id, speaks: isObject(delta) && speaks({ text: delta.content, ...delta }), ends: isText(reason) };
  }
  return { starts: 'messageStart' in event, speaks: 'contentBlockDelta' in event, ends: 'messageStop' in event };
}

function speaks(part: unknown): boolean {
  return isObject(part) && (isText(part.text) || part.functionCall !== undefined || part.tool_calls !== undefined);
}

function firstOf([first]: readonly unknown[]): Fields {
  return isObject(first) ? first : {};
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}
