import { START } from './json-text.js';

/** Writes the events of one response and numbers them from 0, without gaps. */
export class EventNumbers {
  #next = 0;
  readonly #end: string;

  /**
   * @param streamId the `stream_id` of the request, repeated in every event; undefined if it had
   * none.
   */
  constructor(streamId: string | undefined) {
    this.#end = streamId === undefined ? '}' : `,"stream_id":${JSON.stringify(streamId)}}`;
  }

  /** Leaves out a number. */
  skip(): void {
    this.#next++;
  }

  /**
   * @param fields the event's other fields as JSON, for example
   * `"output_index":0,"item_id":"msg_1"`.
   */
  event(type: string, fields: string): string {
    return `${START}${type}","sequence_number":${this.#next++},${fields}${this.#end}`;
  }

  /**
   * The constant parts of an event that occurs once per token.
   *
   * @returns a function from the varying text, already escaped, to the event.
   */
  template(type: string, before: string, after: string): (text: string) => string {
    const start = `${START}${type}","sequence_number":`;
    const middle = `,${before}`;
    const end = after + this.#end;
    return (text) => start + this.#next++ + middle + text + end;
  }
}
