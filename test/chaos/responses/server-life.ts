import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Test } from 'tap';
import { Victim } from '../victim.js';

const STORES = { memory: '', sqlite: 'sessions: { use: sqlite, path: ./sessions.db }' } as const;
export type StoreName = keyof typeof STORES;

/** A server in a process of its own, through all of its lives. */
export class ServerLife {
  /** How often it was started. */
  life = 0;
  /** Whether its sessions outlive it. */
  readonly isDurable: boolean;
  url = '';
  readonly #folder: string;
  readonly #victim: Victim;
  readonly #store: StoreName;
  #version = 0;
  #isSwapped = false;

  constructor(t: Test, store: StoreName, modelUrl: string) {
    this.#store = store;
    this.isDurable = store !== 'memory';
    this.#folder = t.testdir({});
    this.#victim = new Victim(t, this.#folder, { MODEL_URL: modelUrl });
  }

  /** The prompt of the agent, which a reload changes. */
  get prompt(): string {
    return `Prompt ${this.#version}.`;
  }

  async start(): Promise<void> {
    this.#write();
    this.url = await this.#victim.start();
    this.life++;
  }

  /** Changes the prompt, and the order of the transports. */
  async reload(isSwapped: boolean): Promise<void> {
    this.#version++;
    this.#isSwapped = isSwapped;
    this.#write();
    const changes = () => this.#victim.log.filter(({ event }) => event === 'configuration_changed').length;
    const before = changes();
    this.#victim.signal('SIGHUP');
    await eventually(() => changes() > before);
  }

  /** Sends SIGTERM, and waits until it takes no new requests. */
  async terminate(): Promise<void> {
    this.#victim.signal('SIGTERM');
    await eventually(async () => (await fetch(`${this.url}/readyz`).catch(() => undefined))?.status !== 200);
  }

  async exit(): Promise<number | null> {
    return this.#victim.exit();
  }

  async kill(): Promise<void> {
    await this.#victim.kill();
  }

  #write(): void {
    const protocols = ['responses: {}', 'websocket: {}'];
    const yaml = `
transports:
  http: { port: 0, drain: 1s }
  chat-completions: {}
  ${(this.#isSwapped ? protocols.toReversed() : protocols).join('\n  ')}
  conversations: {}
  models: {}
  health: {}
  sse: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  clock: {}
limits: { drain: 1s }
agents:
  assistant: { model: fast, tools: [clock], system: "${this.prompt}" }
${STORES[this.#store]}
log: { level: warn }
`;
    writeFileSync(join(this.#folder, 'plugboard.yaml'), yaml);
  }
}
