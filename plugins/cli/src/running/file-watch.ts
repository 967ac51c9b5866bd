import { stat } from 'node:fs/promises';
import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';

/** Milliseconds between two looks at the files. */
const INTERVAL = 250;

/**
 * Watches files for changes.
 *
 * It looks at the files' metadata four times a second instead of asking the operating system for
 * events: that also notices files that an editor replaces by renaming, mounted files, and symbolic
 * links that are switched (Kubernetes). A change is reported when the files have then stayed the
 * same from one look to the next, so that a file is not read while it is written.
 */
export class FileWatch {
  readonly #files: () => readonly string[];
  readonly #clock: Clock;
  readonly #onChange: () => void;
  /** What the files looked like when the last change was reported, by path. */
  #reported = new Map<string, string>();
  #last = new Map<string, string>();
  #timer: Timer | undefined;

  /** @param options.files called at each look. A file that does not exist is watched, too. */
  constructor(options: { readonly files: () => readonly string[]; readonly clock: Clock; onChange(): void }) {
    this.#files = options.files;
    this.#clock = options.clock;
    this.#onChange = options.onChange;
  }

  /** Resolves when changes from now on are noticed. */
  async start(): Promise<void> {
    this.#last = await signatures(this.#files());
    this.#reported = this.#last;
    this.#timer = this.#clock.after(INTERVAL, () => void this.#look());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    const now = await signatures(this.#files());
    // Files that belong to the configuration only since the last reload have not changed.
    for (const [file, signature] of now) if (!this.#reported.has(file)) this.#reported.set(file, signature);
    const settled = [...now].every(([file, signature]) => this.#last.get(file) === signature);
    const changed = [...now].some(([file, signature]) => this.#reported.get(file) !== signature);
    this.#last = now;
    if (settled && changed) {
      this.#reported = now;
      this.#onChange();
    }
    this.#timer?.refresh();
  }
}

async function signatures(files: readonly string[]): Promise<Map<string, string>> {
  return new Map(await Promise.all(files.map(async (file): Promise<[string, string]> => [file, await signature(file)])));
}

/** Changes whenever the content may have changed. */
async function signature(file: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(':');
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
