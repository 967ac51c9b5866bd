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
 * 3. An operation that cannot be a tool is skipped, with a line in the log.
 */
export class HttpTools implements ToolSource, Lifecycle {
  readonly single = false;
  readonly #options: HttpToolsOptions;
  #tools: readonly Tool[] = [];

  constructor(options: HttpToolsOptions) {
    this.#options = options;
  }

  tools(): readonly Tool[] {
    return this.#tools;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#fetch(signal);
  }

  async reload(signal: AbortSignal): Promise<void> {
    await this.#fetch(signal);
  }

  /**
   * Makes the tools of a document.
   * @throws ConfigFault if it cannot be used.
   */
  load(text: string): void {
    const { config, log } = this.#options;
    let skipped = 0;
    const { operations, problems } = loadOperations(text, config, (operation, reason) => {
      skipped += 1;
      if (skipped <= MAX_SKIPPED) log.warn({ operation: operation.slice(0, 200) }, `an operation was skipped: ${reason}`);
    });
    if (problems.length > 0) throw new ConfigFault(problems);
    if (skipped > MAX_SKIPPED) log.warn(`${skipped - MAX_SKIPPED} more operations were skipped`);
    if (operations.length === 0) log.warn('the OpenAPI document offers no tools');
    this.#tools = operations.map((operation) => this.#tool(operation));
  }

  async #fetch(signal: AbortSignal): Promise<void> {
    const { config, calls, log } = this.#options;
    if (!isUrl(config.openapi)) return;
    this.load(await fetchDocument(config.openapi, calls.addresses, signal));
    log.info({ tools: this.#tools.length }, 'the OpenAPI document was read');
  }

  #tool(operation: LoadedOperation): Tool {
    const { name, description, inputSchema, effect, keyed } = operation.plan;
    const { calls } = this.#options;
    return { name, description, inputSchema, effect, keyed, run: (input, call) => callOperation(operation, input, call, calls) };
  }
}
