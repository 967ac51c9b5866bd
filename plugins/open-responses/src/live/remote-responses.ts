import { AgentRuntimes, type Clock, type Extensions, type PluginContext, type Principal } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { isExtension, typeOfEvent } from '../events/json-text.js';
import { type OfferedHead, topicOf } from './offered-response.js';

type OtherServers = NonNullable<AgentRuntime['otherServers']>;
type Texts = AsyncIterator<{ readonly text?: string }>;

/** Milliseconds until a server that runs a response shows it; and one whose response has ended. */
const RUNNING_TIMEOUT = 6_000;
const ENDED_TIMEOUT = 2_000;
/** Milliseconds until a response whose turn has ended is stored, and between two looks for it. */
const STORED_TIMEOUT = 5_000;
const LOOK_EVERY = 100;

const TERMINAL: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/** Responses that other servers run, by their ids. Finds none where there are no other servers. */
export class RemoteResponses {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #clock: Clock;

  constructor(@inject(CONTEXT) { extensions, clock }: PluginContext) {
    this.#runtimes = extensions(AgentRuntimes);
    this.#clock = clock;
  }

  /** Whether a turn of the response is in line, and the principal reaches it. @throws TurnError */
  async isRunning(id: string, principal: Principal): Promise<boolean> {
    return (await this.#servers?.find(turnOf(id), principal)) !== undefined;
  }

  /** Ends the turn of a response. @returns whether there was one. @throws TurnError */
  async cancel(id: string, principal: Principal): Promise<boolean> {
    return (await this.#servers?.cancel(turnOf(id), principal)) ?? false;
  }

  /**
   * Opens a response at the server that runs it, or ran it a short while ago.
   * @param after the sequence number of the last event that the reader has.
   * @returns undefined if no server shows it.
   */
  async open(id: string, principal: Principal, after: number, extensions: boolean): Promise<RemoteResponse | undefined> {
    const servers = this.#servers;
    if (!servers) return undefined;
    const isRunning = (await servers.find(turnOf(id), principal)) !== undefined;
    const stop = new AbortController();
    const timer = this.#clock.after(isRunning ? RUNNING_TIMEOUT : ENDED_TIMEOUT, () => stop.abort());
    const texts = servers.read(topicOf(id), stop.signal)[Symbol.asyncIterator]();
    try {
      const { text } = (await texts.next()).value ?? {};
      const head = text === undefined ? undefined : (JSON.parse(text) as OfferedHead);
      const isReached = head?.project === principal.project && (principal.agents?.includes(head.agent) ?? true);
      if (head && isReached) return new RemoteResponse(id, head, texts, { after, extensions, leave: () => stop.abort() });
      stop.abort();
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  /** What is stored of a response whose turn has just ended. @returns undefined if nothing is. */
  async stored<T>(get: () => Promise<T | undefined>): Promise<T | undefined> {
    for (let waited = 0; waited < STORED_TIMEOUT; waited += LOOK_EVERY) {
      const found = await get();
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#clock.after(LOOK_EVERY, resolve));
    }
    return get();
  }

  get #servers(): OtherServers | undefined {
    return this.#runtimes.one().otherServers;
  }
}

/** A response of another server, and a reader of its events. */
export class RemoteResponse {
  readonly id: string;
  readonly head: OfferedHead;
  readonly #texts: Texts;
  readonly #after: number;
  readonly #extensions: boolean;
  readonly #leave: () => void;
  /** The sequence number of the next event. */
  #position: number;
  #isOver = false;

  constructor(
    id: string,
    head: OfferedHead,
    texts: Texts,
    options: { readonly after: number; readonly extensions: boolean; readonly leave: () => void },
  ) {
    this.id = id;
    this.head = head;
    this.#texts = texts;
    this.#after = options.after;
    this.#extensions = options.extensions;
    this.#leave = options.leave;
    this.#position = head.first;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Its server decides about it. What reads it here ends. */
  cancel(): void {
    this.leave();
  }

  leave(): void {
    this.#isOver = true;
    this.#leave();
  }

  /** Resolves with the next events; with undefined at the end, or when the reader has left. */
  async next(): Promise<readonly string[] | undefined> {
    while (!this.#isOver) {
      const { value, done } = await this.#texts.next();
      if (this.#isOver || done) return undefined;
      const events = value.text === undefined ? [this.#cut()] : value.text.split('\n');
      if (TERMINAL.has(typeOfEvent(events.at(-1) ?? ''))) this.leave();
      const first = this.#position;
      this.#position += events.length;
      const wanted = events.filter((event, index) => first + index > this.#after && (this.#extensions || !isExtension(event)));
      if (wanted.length > 0) return wanted;
    }
    return undefined;
  }

  /** The last event of a response whose server has died. */
  #cut(): string {
    const response = JSON.parse(this.head.response) as object;
    const ended = { ...response, status: 'incomplete', incomplete_details: { reason: 'shutdown' } };
    return JSON.stringify({ type: 'response.incomplete', sequence_number: this.#position, response: ended });
  }
}

/** The id of its turn's request. */
function turnOf(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}
