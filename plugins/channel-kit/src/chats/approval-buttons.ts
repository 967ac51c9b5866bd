import type { AgentEvent } from '@plugboard/kernel';
import type { Button } from '../platform/platform.js';
import type { ChatSettings } from '../state/records.js';

/** Calls that get buttons of their own. The text names all. */
const MAX_CALLS = 10;

/** Collects the calls of a turn that wait for approval (CH-8). */
export class Asks {
  readonly #ids = new Map<string, string>();

  add(events: readonly AgentEvent[]): void {
    for (const event of events) if (event.type === 'approval') this.#ids.set(event.code, event.id);
  }

  /** What the chat remembers, so that a late press does nothing. */
  get settings(): Pick<ChatSettings, 'asks'> | undefined {
    return this.#ids.size === 0 ? undefined : { asks: Object.fromEntries(this.#ids) };
  }

  get buttons(): readonly Button[] | undefined {
    const [first, ...others] = this.#ids.keys();
    if (first === undefined) return undefined;
    if (others.length === 0) return pair('', first);
    const each = [first, ...others].slice(0, MAX_CALLS).flatMap((code) => pair(` ${code}`, code));
    return [...each, ...pair(' all', `all ${first}`)];
  }
}

/** The id of the request that a button decides about, if it waits in the chat. */
export function askOf(line: string, { asks = {} }: ChatSettings): string | undefined {
  const code = line.trim().split(/\s+/).at(-1)?.toUpperCase() ?? '';
  return Object.hasOwn(asks, code) ? asks[code] : undefined;
}

function pair(label: string, what: string): readonly Button[] {
  return [
    { label: `Approve${label}`, line: `approve ${what}` },
    { label: `Deny${label}`, line: `deny ${what}` },
  ];
}
