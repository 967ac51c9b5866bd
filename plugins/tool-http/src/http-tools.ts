import { ConfigFault, type Lifecycle, type Logger, type Tool, type ToolSource } from '@plugboard/kernel';
import { type CallOptions, callOperation } from './call-operation.js';
import type { HttpConfig } from './config.js';
import { fetchDocument } from './fetch-document.js';
import { isUrl, type LoadedOperation, loadOperations } from './load-operations.js';

/** Operations that were skipped of which each has a line in the log. */
const MAX_SKIPPED = 10;

interface HttpToolsOptions {
  readonly config: HttpConfig;
  readonly calls: CallOptions;
  readonly log: Logger;
}

/**
 * The operations of one OpenAPI document as tools.
 *
 * 1. A document that is a file is read when the entry is registered.
 * 2. One that is a URL is read by `start`, which throws if that fails, and again by `reload`, which
 *    then keeps the tools it had.
 * 3. An operation that cannot be a tool is skipped. The log says so when the entry starts, and not
 *    in each command that registers it.
 */
export class HttpTools implements ToolSource, Lifecycle {
  readonly single = false;
  readonly #options: HttpToolsOptions;
  #tools: readonly Tool[] = [];
  #skipped: readonly { readonly operation: string; readonly reason: string }[] = [];

  constructor(options: HttpToolsOptions) {
    this.#options = options;
  }

  tools(): readonly Tool[] {
    return this.#tools;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.reload(signal);
    if (!isUrl(this.#options.config.openapi)) this.#logSkipped();
  }

  async reload(signal: AbortSignal): Promise<void> {
    const { config, calls, log } = this.#options;
    if (!isUrl(config.openapi)) return;
    this.load(await fetchDocument(config.openapi, calls.addresses, signal));
    this.#logSkipped();
    log.info({ tools: this.#tools.length }, 'the OpenAPI document was read');
  }

  /**
   * Makes the tools of a document.
   * @throws ConfigFault if it cannot be used.
   */
  load(text: string): void {
    const skipped: { operation: string; reason: string }[] = [];
    const onSkip = (operation: string, reason: string) => skipped.push({ operation: operation.slice(0, 200), reason });
    const { operations, problems } = loadOperations(text, this.#options.config, onSkip);
    if (problems.length > 0) throw new ConfigFault(problems);
    this.#skipped = skipped;
    this.#tools = operations.map((operation) => this.#tool(operation));
  }

  #logSkipped(): void {
    const { log } = this.#options;
    for (const { operation, reason } of this.#skipped.slice(0, MAX_SKIPPED))
      log.warn({ operation }, `an operation was skipped: ${reason}`);
    const more = this.#skipped.length - MAX_SKIPPED;
    if (more > 0) log.warn(`${more} more operations were skipped`);
    if (this.#tools.length === 0) log.warn('the OpenAPI document offers no tools');
  }

  #tool(operation: LoadedOperation): Tool {
    const { name, description, inputSchema, effect, keyed } = operation.plan;
    const { calls } = this.#options;
    return { name, description, inputSchema, effect, keyed, run: (input, call) => callOperation(operation, input, call, calls) };
  }
}
