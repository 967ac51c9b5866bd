import type { AgentEvent } from '@plugboard/kernel';
import type { Target, TurnToolCall, TurnToolResult } from '@plugboard/kernel/contracts';
import type { EventNumbers } from './event-numbers.js';
import { nestedEvents } from './nested-events.js';
import type { ItemPlace, OutputItem } from './output-item.js';

/** Bytes of a tool's result that callers are shown. */
const SHOWN_BYTES = 16 * 1024;
/** Reserved for the note that says how much was left out. */
const NOTE_BYTES = 64;

/**
 * An `mcp_call` item: a call of a tool that the server runs. SDKs of the protocol do not run it.
 * The visibility `names` hides arguments, progress and result.
 */
export class McpCallItem implements OutputItem {
  readonly #id: string;
  /** The fields that never change, as JSON. */
  readonly #fields: string;
  readonly #showsAll: boolean;
  readonly #arguments: string;
  readonly #indexField: string;
  readonly #itemFields: string;
  readonly #numbers: EventNumbers;
  #shownArguments = '""';
  #output = 'null';
  #error = 'null';
  #status: 'in_progress' | 'completed' | 'failed' | 'incomplete' = 'in_progress';

  constructor(
    { id, index }: ItemPlace,
    call: {
      readonly tool: NonNullable<TurnToolCall['tool']>;
      readonly arguments: string;
      /** The request for approval that allowed the call. */
      readonly approval?: string | undefined;
      readonly visibility: Exclude<Target['toolVisibility'], 'none'>;
    },
    numbers: EventNumbers,
  ) {
    const { entry, name } = call.tool;
    this.#id = id;
    this.#fields =
      `"type":"mcp_call","server_label":${JSON.stringify(entry)},"name":${JSON.stringify(name)}` +
      `,"approval_request_id":${JSON.stringify(call.approval ?? null)}`;
    this.#showsAll = call.visibility === 'full';
    this.#arguments = JSON.stringify(this.#showsAll ? call.arguments : '');
    this.#indexField = `"output_index":${index}`;
    this.#itemFields = `${this.#indexField},"item_id":"${id}"`;
    this.#numbers = numbers;
  }

  open(out: string[]): void {
    const numbers = this.#numbers;
    out.push(
      numbers.event('response.output_item.added', `${this.#indexField},"item":${this.json()}`),
      numbers.event('response.mcp_call.in_progress', this.#itemFields),
    );
    this.#shownArguments = this.#arguments;
    if (this.#arguments !== '""')
      out.push(numbers.event('response.mcp_call_arguments.delta', `${this.#itemFields},"delta":${this.#arguments}`));
    out.push(numbers.event('response.mcp_call_arguments.done', `${this.#itemFields},"arguments":${this.#arguments}`));
  }

  /** `svc:tool_call.progress`, an extension that connections ask for. */
  progress({ message, fraction }: Extract<AgentEvent, { type: 'tool-progress' }>, out: string[]): void {
    if (!this.#showsAll) return;
    const share = fraction === undefined ? '' : `,"progress":${JSON.stringify(fraction)}`;
    out.push(
      this.#numbers.event('svc:tool_call.progress', `"item_id":"${this.#id}","message":${JSON.stringify(message)}${share}`),
    );
  }

  /** `svc:nested`, of the turn that the call started: an extension that connections ask for. */
  nested(event: Extract<AgentEvent, { type: 'nested' }>, out: string[]): void {
    if (!this.#showsAll) return;
    for (const fields of nestedEvents(event, this.#id))
      out.push(this.#numbers.event('svc:nested', JSON.stringify(fields).slice(1, -1)));
  }

  finish(result: Pick<TurnToolResult, 'content' | 'isError'>, out: string[]): void {
    this.#status = result.isError ? 'failed' : 'completed';
    if (result.isError) this.#error = this.#errorOf(result);
    else if (this.#showsAll) this.#output = JSON.stringify(truncateResult(result.content));
    this.#close(`response.mcp_call.${this.#status}`, out);
  }

  /** The turn ended before the tool did. */
  cut(out: string[]): void {
    this.#status = 'incomplete';
    this.#close('response.mcp_call.failed', out);
  }

  json(): string {
    const state = `"status":"${this.#status}","output":${this.#output},"error":${this.#error}`;
    return `{"id":"${this.#id}",${this.#fields},"arguments":${this.#shownArguments},${state}}`;
  }

  #close(type: string, out: string[]): void {
    out.push(
      this.#numbers.event(type, this.#itemFields),
      this.#numbers.event('response.output_item.done', `${this.#indexField},"item":${this.json()}`),
    );
  }

  #errorOf({ content }: Pick<TurnToolResult, 'content'>): string {
    const text = this.#showsAll ? truncateResult(content) : 'The tool call failed.';
    return JSON.stringify({ type: 'mcp_tool_execution_error', content: [{ type: 'text', text }] });
  }
}

/**
 * A tool's result as callers are shown it: at most 16 KiB of UTF-8, with a last line that says how
 * much was left out.
 */
function truncateResult(text: string): string {
  // A UTF-16 code unit is 1 to 3 bytes of UTF-8.
  if (text.length * 3 <= SHOWN_BYTES) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= SHOWN_BYTES) return text;
  let end = SHOWN_BYTES - NOTE_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--; // within a character
  return `${bytes.toString('utf8', 0, end)}\n… [truncated ${bytes.length - end} bytes]`;
}
