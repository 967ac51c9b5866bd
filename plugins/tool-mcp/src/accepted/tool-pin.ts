import type { Clock, Logger } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { messageOf } from '../errors/errors.js';
import type { ListedTool } from '../tools/listed-tools.js';
import { digestsOf } from '../tools/tool-changes.js';
import type { AcceptedFile } from './accepted-file.js';

/** Milliseconds between two looks at the file. */
const LOOK_EVERY = 5000;
/** Names of tools in one line of the log. */
const MAX_NAMES = 20;

interface ToolPinOptions {
  readonly accepted: AcceptedFile;
  /** The name of the entry, for messages. */
  readonly entry: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Offers only tools that were accepted, as they were accepted.
 *
 * 1. The first list of a server is accepted as it is.
 * 2. Of later lists, tools that are new or changed are held back, with one line a change.
 * 3. `plugboard tools accept` changes the file. It is looked at every 5 seconds.
 */
export class ToolPin {
  readonly #options: ToolPinOptions;
  #accepted: ReadonlyMap<string, string> | undefined;
  /** What was held back last. */
  #heldBack = '';
  #look: Timer | undefined;

  constructor(options: ToolPinOptions) {
    this.#options = options;
  }

  /** The tools of a list that may be offered. @throws AcceptedFileError */
  offered<T extends ListedTool>(listed: readonly T[]): readonly T[] {
    const { accepted, entry, log } = this.#options;
    const digests = digestsOf(listed);
    // A file that was deleted while the server runs changes nothing here.
    this.#accepted = accepted.read().tools ?? this.#accepted;
    if (!this.#accepted) {
      accepted.accept({ tools: digests });
      this.#accepted = digests;
      log.info({ file: accepted.path, tools: listed.length }, 'the first tools of the MCP server were accepted');
    }
    const known = this.#accepted;
    const isAccepted = ({ name }: T) => known.get(name) === digests.get(name);
    const names = listed
      .filter((tool) => !isAccepted(tool))
      .map(({ name }) => name)
      .sort();
    const heldBack = JSON.stringify(names.map((name) => [name, digests.get(name)]));
    if (names.length > 0 && heldBack !== this.#heldBack) {
      const shown = names.slice(0, MAX_NAMES).map((name) => name.slice(0, 200));
      log.warn(
        { tools: shown, count: names.length },
        `tools that are new or changed are not offered: look at them, then run plugboard tools accept --entry ${entry}`,
      );
    }
    this.#heldBack = heldBack;
    return listed.filter(isAccepted);
  }

  /** Calls a function when the file was changed, until `stop`. */
  watch(onChange: () => void): void {
    const { accepted, clock, log } = this.#options;
    this.#look = clock.after(LOOK_EVERY, () => {
      this.watch(onChange);
      try {
        if (accepted.hasChanged()) onChange();
      } catch (error) {
        log.warn(`keeping the tools that were accepted before: ${messageOf(error)}`);
      }
    });
  }

  stop(): void {
    this.#look?.cancel();
  }
}
