import type { TurnToolCall } from '@plugboard/kernel/contracts';
import type { EventNumbers } from './event-numbers.js';
import type { OutputItem } from './output-item.js';

/**
 * A `function_call` item: a call of a tool that the caller runs. Its arguments are complete when
 * the runtime reports it.
 */
export class FunctionCallItem implements OutputItem {
  readonly index: number;
  readonly #id: string;
  readonly #call: TurnToolCall;

  constructor(id: string, index: number, call: TurnToolCall) {
    this.index = index;
    this.#id = id;
    this.#call = call;
  }

  /** All events of the item. */
  write(numbers: EventNumbers, out: string[]): void {
    const indexField = `"output_index":${this.index}`;
    const args = JSON.stringify(this.#call.arguments);
    const itemFields = `${indexField},"item_id":"${this.#id}"`;
    out.push(numbers.event('response.output_item.added', `${indexField},"item":${this.#item('in_progress', '""')}`));
    if (this.#call.arguments !== '')
      out.push(numbers.event('response.function_call_arguments.delta', `${itemFields},"delta":${args}`));
    out.push(
      numbers.event(
        'response.function_call_arguments.done',
        `${itemFields},"name":${JSON.stringify(this.#call.name)},"arguments":${args}`,
      ),
      numbers.event('response.output_item.done', `${indexField},"item":${this.json()}`),
    );
  }

  json(): string {
    return this.#item('completed', JSON.stringify(this.#call.arguments));
  }

  #item(status: string, args: string): string {
    const { id, name } = this.#call;
    return `{"id":"${this.#id}","type":"function_call","status":"${status}","call_id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"arguments":${args}}`;
  }
}
