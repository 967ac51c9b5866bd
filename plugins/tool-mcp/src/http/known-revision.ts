import type { Client, PriorDiscovery } from '@modelcontextprotocol/client';
import type { Clock } from '@plugboard/kernel';

/** Milliseconds that a revision is taken for granted: servers are replaced by newer ones. */
const MAX_AGE = 24 * 60 * 60 * 1000;

/** The revision of MCP that a server spoke last, so that not every session has to ask. */
export class KnownRevision {
  readonly #clock: Clock;
  #known: { readonly prior: PriorDiscovery; readonly until: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get prior(): PriorDiscovery | undefined {
    return this.#known && this.#clock.monotonic() < this.#known.until ? this.#known.prior : undefined;
  }

  /** @param client is connected. */
  remember(client: Client): void {
    if (this.prior) return; // it was not asked
    const discover = client.getProtocolEra() === 'modern' ? client.getDiscoverResult() : undefined;
    const prior: PriorDiscovery = discover ? { kind: 'modern', discover } : { kind: 'legacy' };
    this.#known = { prior, until: this.#clock.monotonic() + MAX_AGE };
  }

  /** A session could not be opened: the server may be another one now. */
  forget(): void {
    this.#known = undefined;
  }
}
