import type { PluginState } from '@plugboard/kernel';
import { type AssistantMessage, type Extra, parseJson } from '@plugboard/kernel/contracts';
import { OwnKey } from './own-key.js';
import { openText, sealText } from './sealed-text.js';

/**
 * What a model connection attached to the step that ended an answer: its thinking, and the
 * signatures of it.
 */
export interface StepExtras {
  readonly message?: Extra | undefined;
  /** By the ids of all calls of the step. */
  readonly calls: Readonly<Record<string, Extra | null>>;
}

/** Seals the extras of answers for one project, and opens what comes back. */
export interface ExtrasSeal {
  seal(extras: StepExtras): string;
  /** Undefined for a token that this server did not make, or made for another project. */
  open(token: string): StepExtras | undefined;
}

/**
 * Extras travel through the client, which keeps the conversation: sealed, in a part of the answer
 * that clients send back unread.
 */
export class SealedExtras {
  readonly #key: OwnKey;

  constructor(state: PluginState) {
    this.#key = new OwnKey(state, 'key');
  }

  /** Undefined if the store cannot be reached: an answer does not depend on its thinking. */
  async for(project: string): Promise<ExtrasSeal | undefined> {
    const key = await this.#key.load().catch(() => undefined);
    return (
      key && { seal: (extras) => sealText(JSON.stringify(extras), key, project), open: (token) => opened(token, key, project) }
    );
  }
}

/**
 * The message, with those extras that are of its step: which name calls of it. Takes time in
 * proportion to the calls and the extras (S-64).
 */
export function withExtras(message: AssistantMessage, all: readonly StepExtras[]): AssistantMessage {
  if (all.length === 0) return message;
  const { tool_calls: calls = [] } = message;
  const own = new Set(calls.map(({ id }) => id));
  const signed = new Map<string, Extra>();
  let extra: Extra | undefined;
  for (const extras of all) {
    const ids = Object.keys(extras.calls).filter((id) => own.has(id));
    if (ids.length > 0) extra = extras.message ?? extra;
    for (const id of ids) {
      const one = extras.calls[id];
      if (one) signed.set(id, one);
    }
  }
  if (!extra && signed.size === 0) return message;
  const tool_calls = calls.map((call) => {
    const one = signed.get(call.id);
    return one ? { ...call, extra: one } : call;
  });
  return { ...message, tool_calls, ...(extra && { extra }) };
}

/** What opens is what this server has sealed. */
function opened(token: string, key: Uint8Array, project: string): StepExtras | undefined {
  const text = openText(token, key, project);
  return text === undefined ? undefined : (parseJson(text) as StepExtras);
}
