import type { Target, TurnApproval } from '@plugboard/kernel/contracts';
import type { EventNumbers } from './event-numbers.js';
import type { OutputItem } from './output-item.js';

/**
 * An `mcp_approval_request` item: a call of one of the agent's tools waits for a person. An item
 * `mcp_approval_response` in a later request decides. The visibility `names` hides the arguments,
 * `none` also what is called.
 */
export class ApprovalRequestItem implements OutputItem {
  readonly index: number;
  readonly #json: string;

  constructor(index: number, { id, call }: TurnApproval, visibility: Target['toolVisibility']) {
    this.index = index;
    this.#json = JSON.stringify({
      id,
      type: 'mcp_approval_request',
      server_label: visibility === 'none' ? '' : (call.tool?.entry ?? ''),
      name: visibility === 'none' ? '' : (call.tool?.name ?? ''),
      arguments: visibility === 'full' ? call.arguments : '',
    });
  }

  /** All events of the item. */
  write(numbers: EventNumbers, out: string[]): void {
    const fields = `"output_index":${this.index},"item":${this.#json}`;
    out.push(numbers.event('response.output_item.added', fields), numbers.event('response.output_item.done', fields));
  }

  json(): string {
    return this.#json;
  }
}
