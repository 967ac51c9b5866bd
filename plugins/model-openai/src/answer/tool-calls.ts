import type { IdSource, ModelToolCall } from '@plugboard/kernel';
import { isObject, isText } from '../json/json.js';

interface Call {
  readonly index: unknown;
  id: string;
  name: string;
  arguments: string;
}

/**
 * Assembles tool calls from the fragments of a stream. In the protocol, `index` numbers the calls, and
 * the first fragment of each has `id` and `name`. Servers differ: some omit `index`, some give every
 * call the index 0 and distinguish them by id, some repeat id and name, some send the arguments as an
 * object.
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
    const call = this.#find(index, id, name) ?? this.#begin(index);
    if (call.id === '') call.id = id;
    if (name !== '') call.name = name;
    if (typeof called.arguments === 'string') call.arguments += called.arguments;
    else if (isObject(called.arguments)) call.arguments = JSON.stringify(called.arguments);
  }

  /** All calls, in the order of their first fragments. A missing or duplicate id is replaced by a new one. */
  all(ids: IdSource): readonly ModelToolCall[] {
    const taken = new Set<string>();
    return this.#calls.map((call) => {
      const id = call.id === '' || taken.has(call.id) ? `call_${ids.base62(24)}` : call.id;
      taken.add(id);
      // Many servers send no arguments for a tool without parameters.
      return { type: 'tool-call', id, name: call.name, arguments: call.arguments.trim() === '' ? '{}' : call.arguments };
    });
  }

  /** The call that a fragment continues, or undefined if it begins a new one. */
  #find(index: unknown, id: string, name: string): Call | undefined {
    const isNumbered = typeof index === 'number';
    const known = id === '' ? undefined : this.#calls.find((call) => call.id === id);
    // A name under another index begins another call, even if the server reuses the id.
    if (known && (name === '' || !isNumbered || known.index === index)) return known;
    const numbered = isNumbered ? this.#calls.findLast((call) => call.index === index) : undefined;
    // A new id with a name begins another call under the same index. A new id alone does not: some
    // servers send a fresh id with every fragment.
    if (numbered) return id !== '' && numbered.id !== '' && name !== '' ? undefined : numbered;
    // A fragment without id and name continues the last call, even under another index.
    return id === '' && name === '' ? this.#calls.at(-1) : undefined;
  }

  #begin(index: unknown): Call {
    const call: Call = { index, id: '', name: '', arguments: '' };
    this.#calls.push(call);
    return call;
  }
}
