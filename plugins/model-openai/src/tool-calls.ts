import type { IdSource, ModelToolCall } from '@plugboard/kernel';
import { isObject, isText } from './json.js';

interface Call {
  readonly index: unknown;
  id: string;
  name: string;
  arguments: string;
}

/**
 * Puts tool calls together from the fragments of a stream. The protocol numbers the calls by `index`, and names `id` and `name` in the first
 * fragment of each. Servers differ: some leave `index` out, some give every call the number 0 and tell them apart by their ids, some say id
 * and name every time, some give the arguments as an object.
 */
export class ToolCalls {
  readonly #calls: Call[] = [];

  /** @param fragment an item of `tool_calls`, of a delta or of a message. */
  add(fragment: unknown): void {
    if (!isObject(fragment)) return;
    const { index } = fragment;
    const called = isObject(fragment.function) ? fragment.function : {};
    const id = isText(fragment.id) ? fragment.id : '';
    const name = isText(called.name) ? called.name : '';
    const call = this.#continued(index, id, name) ?? this.#begin(index);
    if (call.id === '') call.id = id;
    if (name !== '') call.name = name;
    if (typeof called.arguments === 'string') call.arguments += called.arguments;
    else if (isObject(called.arguments)) call.arguments = JSON.stringify(called.arguments);
  }

  /** All calls in the order in which they began. An id that is missing, or that another call has too, is made up. */
  all(ids: IdSource): readonly ModelToolCall[] {
    const taken = new Set<string>();
    return this.#calls.map((call) => {
      const id = call.id === '' || taken.has(call.id) ? `call_${ids.base62(24)}` : call.id;
      taken.add(id);
      // No arguments at all is how many servers write a call of a tool that takes none.
      return { type: 'tool-call', id, name: call.name, arguments: call.arguments.trim() === '' ? '{}' : call.arguments };
    });
  }

  /** The call that a fragment goes on with, or undefined where it begins a new one. */
  #continued(index: unknown, id: string, name: string): Call | undefined {
    const isNumbered = typeof index === 'number';
    const known = id === '' ? undefined : this.#calls.find((call) => call.id === id);
    // A fragment with a name under another number is another call, whose id the server did not trouble to vary.
    if (known && (name === '' || !isNumbered || known.index === index)) return known;
    const numbered = isNumbered ? this.#calls.findLast((call) => call.index === index) : undefined;
    // A new id together with a name is another call under the same number. A new id alone is not: some servers draw one for every fragment.
    if (numbered) return id !== '' && numbered.id !== '' && name !== '' ? undefined : numbered;
    // What names nothing goes on with the last one, also under another number.
    return id === '' && name === '' ? this.#calls.at(-1) : undefined;
  }

  #begin(index: unknown): Call {
    const call: Call = { index, id: '', name: '', arguments: '' };
    this.#calls.push(call);
    return call;
  }
}
