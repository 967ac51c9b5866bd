import { escaped } from '@plugboard/turn-routes';
import { CustomInput } from '../tools/custom-input.js';
import type { CallForm } from '../tools/tool-name.js';
import type { EventNumbers } from './event-numbers.js';
import { GrowingItem, type ItemPlace } from './output-item.js';

/**
 * A call of a tool that the caller runs, while the model writes it: a `function_call` item, whose
 * arguments grow, or a `custom_tool_call` item, whose input does.
 */
export class ClientCall {
  readonly item: GrowingItem;
  /** Reads the input of a custom tool from the arguments that the model writes. */
  readonly #input: CustomInput | undefined;
  /** Characters of the arguments so far. */
  #written = 0;

  constructor(callId: string, form: CallForm, place: ItemPlace, numbers: EventNumbers) {
    this.item = callItem(callId, form, place, numbers);
    this.#input = form.type === 'custom' ? new CustomInput() : undefined;
  }

  /** @param piece of the arguments. */
  add(piece: string, out: string[]): void {
    this.#written += piece.length;
    this.item.add(escaped(this.#input ? this.#input.add(piece) : piece), out);
  }

  /** The call is complete. @param args all of its arguments. */
  finish(args: string, out: string[]): void {
    this.add(args.slice(this.#written), out);
    if (this.#input) this.item.add(escaped(this.#input.end()), out);
    this.item.close('completed', out);
  }
}

/** The item of a call. */
export function callItem(
  callId: string,
  { type, name, namespace }: CallForm,
  place: ItemPlace,
  numbers: EventNumbers,
): GrowingItem {
  const inNamespace = namespace === undefined ? '' : `,"namespace":${JSON.stringify(namespace)}`;
  const named = `"call_id":${JSON.stringify(callId)},"name":${JSON.stringify(name)}${inNamespace}`;
  const form =
    type === 'custom'
      ? ({ type: 'custom_tool_call', events: 'response.custom_tool_call_input', field: 'input' } as const)
      : ({
          type: 'function_call',
          events: 'response.function_call_arguments',
          field: 'arguments',
          inLast: `,"name":${JSON.stringify(name)}`,
        } as const);
  return new GrowingItem(
    { ...form, fields: (text = '') => `"type":"${form.type}",${named},"${form.field}":"${text}"` },
    place,
    numbers,
  );
}
