import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Test } from 'tap';
import { Plugboard } from '../../plugins/cli/test/plugboard.js';
import { openStore } from '../../plugins/store-sqlite/test/open-store.js';
import type { StoredHistory } from './checker.js';

/**
 * A whole server in a separate process, over a SQLite file in one folder: it can be killed, and
 * started again on what it left.
 */
export class Victim {
  readonly #t: Test;
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;
  #program: Plugboard | undefined;

  /** @param folder holds a `plugboard.yaml` that keeps its sessions in `./sessions.db`. */
  constructor(t: Test, folder: string, env: Readonly<Record<string, string>>) {
    this.#t = t;
    this.#folder = folder;
    this.#env = env;
  }

  /** Starts it, without waiting for anything. */
  launch(): void {
    // Node.js writes no coverage of a process that is killed.
    const env = { ...this.#env, NODE_V8_COVERAGE: '' };
    const program = new Plugboard(this.#t, ['start'], { cwd: this.#folder, env });
    this.#program = program;
  }

  /** Starts it, and waits until it listens. @returns its address. */
  async start(): Promise<string> {
    this.launch();
    const program = this.#running();
    for (;;) {
      await program.prints('\n');
      const [, address] = /^ {2}address +(\S+)$/m.exec(program.stdout) ?? [];
      if (address !== undefined) return address;
      await setImmediate();
    }
  }

  /** Kills it with SIGKILL, and waits until it has ended. */
  async kill(): Promise<void> {
    this.#running().kill('SIGKILL');
    await this.#running().exit();
  }

  /** Asks it to end. @returns its exit code. */
  async stop(): Promise<number | null> {
    this.signal('SIGTERM');
    return this.exit();
  }

  signal(signal: NodeJS.Signals): void {
    this.#running().kill(signal);
  }

  /** Waits until it has ended. @returns its exit code. */
  async exit(): Promise<number | null> {
    return this.#running().exit();
  }

  /** The lines that it has logged in this life. */
  get log(): readonly Record<string, unknown>[] {
    return this.#running().log;
  }

  /**
   * What is kept of those sessions, read from a copy of what the dead process left: the file itself
   * is the next life's to put in order.
   */
  async read(copy: string, sessions: Iterable<readonly [session: string, agent: string]>): Promise<Map<string, StoredHistory>> {
    mkdirSync(copy, { recursive: true });
    for (const name of ['sessions.db', 'sessions.db-wal']) {
      const file = join(this.#folder, name);
      if (existsSync(file)) copyFileSync(file, join(copy, name));
    }
    const { store, database, close } = openStore(copy);
    try {
      const [check] = database.prepare('PRAGMA integrity_check').all();
      if (check?.integrity_check !== 'ok') throw new Error(`the file is damaged: ${JSON.stringify(check)}`);
      const kept = new Map<string, StoredHistory>();
      for (const [session, agent] of sessions) kept.set(session, await store.load({ project: 'default', agent, key: session }));
      return kept;
    } finally {
      close();
    }
  }

  #running(): Plugboard {
    if (!this.#program) throw new Error('it has not been started');
    return this.#program;
  }
}
