import type { IdSource, ModelEvent } from '@plugboard/kernel';
import type { ModelToolCall } from '@plugboard/kernel/contracts';
import { connectionData } from '../extra/connection-data.js';
import { AnswerTooLarge } from '../failure/answer-too-large.js';
import { isObject, isText } from '../json/json.js';
import { CallArguments } from './call-arguments.js';
import { callFields } from './extra-fields.js';

/** Tool calls of one answer (S-55). */
const MAX_CALLS = 256;
/** Characters of the arguments of one call (S-55). */
const MAX_ARGUMENTS = 2 ** 20;

interface Call {
  readonly index: unknown;
  id: string;
  name: string;
  readonly arguments: CallArguments;
  /** Members that the server may expect back. */
  fields: Readonly<Record<string, unknown>>;
  /** Whether an event has shown it. */
  isStreamed: boolean;
  /** Whether its further pieces can be shown: until it leaves the protocol. */
  isRegular: boolean;
}

interface Fragment {
  readonly index: unknown;
  readonly id: string;
  readonly name: string;
  /** JSON text, or a piece of it. Empty if there is none. */
  readonly arguments: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Assembles tool calls from the fragments of a stream. In the protocol, `index` numbers the calls,
 * and the first fragment of each has `id` and `name`. Servers differ: some omit `index` or give
 * every call the same one, some count them differently in the first fragment and in the rest; some
 * omit `id`, send it late, or send another one with every fragment; some repeat the name or send it
 * in pieces; some send the arguments as an object.
 *
 * The calls of streamed tools become events as they arrive, as far as they follow the protocol.
 * What is repaired in them later must not change what was sent.
 */
export class ToolCalls {
  readonly #calls: Call[] = [];
  readonly #isTool: (name: string) => boolean;
  readonly #streamedTools: readonly string[];
  /** Characters of what has come. */
  #size = 0;

  /**
   * @param isTool whether the request declared a tool of this name. It settles what fragments leave
   * open.
   * @param streamedTools the tools whose calls are streamed.
   */
  constructor(isTool: (name: string) => boolean, streamedTools: readonly string[] = []) {
    this.#isTool = isTool;
    this.#streamedTools = streamedTools;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Characters of all calls so far: names, arguments and what the server expects back. */
  get size(): number {
    return this.#size;
  }

  /**
   * @param value an item of `tool_calls`.
   * @param events receives the pieces that can be sent already.
   * @param isWhole whether it is an item of a message: every such item is a separate call.
   * @throws AnswerTooLarge.
   */
  add(value: unknown, events: ModelEvent[], isWhole = false): void {
    const fragment = readFragment(value);
    if (!fragment) return;
    const call = (isWhole ? undefined : this.#find(fragment)) ?? this.#begin(fragment.index);
    if (call.id === '') call.id = fragment.id;
    if (fragment.name !== '' && fragment.name !== call.name) call.name = this.#joinNames(call.name, fragment.name);
    const piece = fragment.arguments === '' ? '' : call.arguments.add(fragment.arguments);
    if (call.arguments.length > MAX_ARGUMENTS) throw new AnswerTooLarge('arguments of a tool call', MAX_ARGUMENTS);
    this.#size += fragment.id.length + fragment.name.length + fragment.arguments.length;
    if (Object.keys(fragment.fields).length > 0) {
      this.#size += JSON.stringify(fragment.fields).length;
      call.fields = { ...call.fields, ...fragment.fields };
    }
    if (isWhole || fragment.index !== call.index) call.isRegular = false;
    if (piece !== '') this.#stream(call, piece, events);
  }

  /**
   * All calls, in the order of their first fragments. A missing or duplicate id is replaced by a
   * new one.
   *
   * @param fingerprint of the model, for the data that is sent back to it.
   */
  all(ids: IdSource, fingerprint: string): readonly ModelToolCall[] {
    const taken = new Set<string>();
    return this.#calls.flatMap(({ id, name, arguments: args, fields }) =>
      args.texts().map((text, i): ModelToolCall => {
        const own = id === '' || i > 0 || taken.has(id) ? `call_${ids.base62(24)}` : id;
        taken.add(own);
        const extra = connectionData(fingerprint, i === 0 ? fields : {}, own);
        return { type: 'tool-call', id: own, name, arguments: text, extra };
      }),
    );
  }

  /** Sends a piece of a call, if the call can be streamed. */
  #stream(call: Call, piece: string, events: ModelEvent[]): void {
    if (!call.isStreamed && !this.#canStream(call)) call.isRegular = false;
    if (!call.isRegular) return;
    // Calls are shown in their order, also those without arguments.
    for (const one of call.isStreamed ? [] : this.#calls.slice(0, this.#calls.indexOf(call))) {
      if (!one.isStreamed) events.push({ type: 'tool-call-delta', id: one.id, name: one.name, arguments: '' });
      one.isStreamed = true;
    }
    call.isStreamed = true;
    events.push({ type: 'tool-call-delta', id: call.id, name: call.name, arguments: piece });
  }

  /** Whether a call and all before it can be shown: their tools are streamed, and they have ids. */
  #canStream(call: Call): boolean {
    const calls = this.#calls.slice(0, this.#calls.indexOf(call) + 1);
    const areKnown = calls.every(
      ({ index, name, isStreamed, isRegular }) =>
        typeof index === 'number' && this.#streamedTools.includes(name) && (isStreamed || isRegular),
    );
    const ids = new Set(calls.map(({ id }) => id));
    return areKnown && ids.size === calls.length && !ids.has('');
  }

  /** The call that a fragment continues, or undefined if it begins a new one. */
  #find(fragment: Fragment): Call | undefined {
    const { index, id, name } = fragment;
    const last = this.#calls.at(-1);
    const isNumbered = typeof index === 'number';
    const numbered = isNumbered ? this.#calls.findLast((call) => call.index === index) : undefined;
    if (id === '' && name === '') {
      // The rest of the last call may arrive under another index than its beginning.
      return last && (!numbered || (numbered.arguments.isComplete && !last.arguments.isComplete)) ? last : numbered;
    }
    const known = id === '' ? undefined : this.#calls.find((call) => call.id === id);
    // An id alone begins no call under an index in use: some servers send a fresh id with every
    // fragment.
    if (name === '') return known ?? numbered;
    if (known) return this.#isSameCall(known, fragment) ? known : undefined;
    if (numbered && (id === '' || numbered.id === '')) return this.#isSameSlot(numbered, fragment) ? numbered : undefined;
    const open = numbered ?? (isNumbered || id !== '' ? undefined : last);
    return open && (continuesArguments(open, fragment) || (id === '' && this.#isPartOfName(open, name))) ? open : undefined;
  }

  /** Whether a fragment with a call's id belongs to it: some servers use an id twice. */
  #isSameCall(call: Call, { index, name }: Fragment): boolean {
    const isMoved = typeof index === 'number' && typeof call.index === 'number' && call.index !== index;
    if (isMoved) return name === call.name && call.arguments.isEmpty;
    return call.name === '' || name === call.name || this.#isPartOfName(call, name);
  }

  /** Whether a fragment with a name and without a new id belongs to the call of the same index. */
  #isSameSlot(call: Call, { name, arguments: more }: Fragment): boolean {
    if (call.name !== '' && name !== call.name) return this.#isPartOfName(call, name);
    const { arguments: begun } = call;
    if (!begun.isComplete || !more.trimStart().startsWith('{')) return true;
    // Other arguments after complete ones belong to another call.
    return begun.equals('{}') || begun.equals(more);
  }

  /** Whether a name is a further piece of a call's name, or the name so far. */
  #isPartOfName(call: Call, name: string): boolean {
    if (!call.arguments.isEmpty) return false;
    return !this.#isTool(call.name) || (!this.#isTool(name) && this.#isTool(call.name + name));
  }

  #joinNames(name: string, more: string): string {
    return more.startsWith(name) && !this.#isTool(name + more) ? more : name + more;
  }

  #begin(index: unknown): Call {
    if (this.#calls.length >= MAX_CALLS) throw new AnswerTooLarge('tool calls in one answer', MAX_CALLS, 'items');
    const call: Call = {
      index,
      id: '',
      name: '',
      arguments: new CallArguments(),
      fields: {},
      isStreamed: false,
      isRegular: true,
    };
    this.#calls.push(call);
    return call;
  }
}

function readFragment(value: unknown): Fragment | undefined {
  if (!isObject(value)) return undefined;
  const called = isObject(value.function) ? value.function : value;
  const id = typeof value.id === 'number' ? String(value.id) : value.id;
  return {
    index: value.index,
    id: isText(id) ? id : '',
    name: isText(called.name) ? called.name : '',
    arguments: argumentsText(called.arguments),
    fields: callFields(value),
  };
}

function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value === 'null' ? '' : value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Whether a fragment that repeats the name has the rest of arguments that were begun. */
function continuesArguments(call: Call, { name, arguments: more }: Fragment): boolean {
  const { arguments: begun } = call;
  return name === call.name && !begun.isBlank && more !== '' && !more.trimStart().startsWith('{') && !begun.isComplete;
}
