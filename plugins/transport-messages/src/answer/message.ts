import type { AgentEvent } from '@plugboard/kernel';
import type { Failure, TurnFinished } from '@plugboard/kernel/contracts';
import { type AnswerFold, ExtrasCollector } from '@plugboard/turn-routes';
import { SIGNATURE } from '../request/content.js';
import {
  type AnswerBlock,
  type AnswerHead,
  callBlock,
  isVisible,
  resultBlock,
  type Stop,
  sealedBlock,
  stopOf,
  usageOf,
  type Visibility,
} from './blocks.js';

/** The result of a completed turn. */
export interface Answer {
  readonly content: readonly AnswerBlock[];
  readonly stop: Stop;
  /** As sent. */
  readonly usage: object;
  /** The model connection of the last step. */
  readonly connection: string | undefined;
}

/**
 * Builds the answer of a turn from its events. A step that ends in calls of the agent's own tools
 * is left out unless they are shown: its text is not the answer.
 */
export class AnswerBuilder implements AnswerFold<Answer> {
  readonly #visibility: Visibility;
  readonly #keepsSteps: boolean;
  readonly #extras: ExtrasCollector;
  #content: AnswerBlock[] = [];
  /** The content of the steps that were left out. */
  #before: AnswerBlock[] = [];
  /** What the server says: blocks of their own (S-74). */
  readonly #notices = new Set<AnswerBlock>();
  #isNewStep = true;
  #refused = false;
  #connection: string | undefined;
  #end: Answer | Failure | undefined;

  /**
   * @param keepsSteps whether every step is a part of the answer: in a stream, or with its calls.
   */
  constructor(visibility: Visibility, keepsSteps: boolean) {
    this.#visibility = visibility;
    this.#keepsSteps = keepsSteps;
    this.#extras = new ExtrasCollector(visibility.seal);
  }

  get end(): Answer | Failure | undefined {
    return this.#end;
  }

  add(batch: readonly AgentEvent[]): void {
    for (const event of batch) {
      this.#extras.add(event);
      if (event.type === 'step') this.#step(event.connection);
      else if (event.type === 'finished') this.#end = this.#finish(event);
      else if (event.type === 'failed') this.#end = event.failure;
      else if (isVisible(event, this.#visibility)) this.#addContent(event);
    }
  }

  #step(connection: string): void {
    this.#connection = connection;
    this.#isNewStep = true;
    this.#refused = false;
    if (this.#keepsSteps) return;
    if (this.#content.length > 0) this.#before = this.#content;
    this.#content = this.#content.filter((block) => this.#notices.has(block));
  }

  #addContent(event: AgentEvent): void {
    switch (event.type) {
      case 'text':
        this.#refused ||= event.isRefusal === true;
        if (event.isNotice) this.#addNotice(event.text);
        else this.#append('text', event.text);
        break;
      case 'reasoning':
        this.#append('thinking', event.text);
        break;
      case 'tool-call':
        this.#content.push(callBlock(event, this.#visibility));
        break;
      case 'tool-result':
        this.#content.push(resultBlock(event, this.#visibility));
        break;
    }
  }

  #addNotice(text: string): void {
    const block = { type: 'text', text } as const;
    this.#notices.add(block);
    this.#content.push(block);
    this.#isNewStep = true;
  }

  /** Adds text to the last block, or begins one. */
  #append(type: 'text' | 'thinking', text: string): void {
    const last = this.#isNewStep ? undefined : this.#content.at(-1);
    this.#isNewStep = false;
    const joins = last?.type === type;
    if (joins) this.#content.pop();
    if (type === 'text') this.#content.push({ type, text: (joins && last.type === 'text' ? last.text : '') + text });
    else {
      const thinking = (joins && last.type === 'thinking' ? last.thinking : '') + text;
      this.#content.push({ type, thinking, signature: SIGNATURE });
    }
  }

  #finish(event: TurnFinished): Answer {
    const block = sealedBlock(this.#extras, event);
    if (block) this.#content.push(block);
    const isEmpty = event.limit !== undefined && this.#content.length === 0;
    return {
      content: isEmpty ? this.#before : this.#content,
      stop: stopOf(event, this.#refused),
      usage: usageOf(event.usage),
      connection: this.#connection,
    };
  }
}

/** The body of an answer that is not streamed. */
export function messageOf({ id, model }: AnswerHead, { content, stop, usage }: Answer): object {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content,
    ...stop,
    usage: { ...usage, service_tier: 'standard' },
  };
}
