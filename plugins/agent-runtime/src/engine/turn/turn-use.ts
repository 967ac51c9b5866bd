import { addUsage, NO_USAGE, type TurnFinished, type Usage } from '@plugboard/kernel/contracts';
import type { Agent } from '../directory/agent.js';
import { ChildSlots } from './child-slots.js';
import type { Spent } from './pending-calls.js';

/** A limit that ends a turn, and the text that says so. */
export interface ReachedLimit {
  readonly limit: NonNullable<TurnFinished['limit']>;
  readonly text: string;
}

/**
 * What a turn uses of its agent's limits. What the turns below it use counts here, too, and each of
 * them has the limits of its own agent besides (AG-2).
 */
export class TurnUse {
  /** Tokens of all model calls. */
  usage: Usage = NO_USAGE;
  readonly #limits: Agent['limits'];
  readonly #above: TurnUse | undefined;
  #steps: number;
  #toolCalls: number;
  /** Those of earlier turns, if this one goes on. */
  readonly #earlierTokens: number;
  /** Of the first turn of a tree, by entry. */
  #slots: Map<string, ChildSlots> | undefined;

  /** @param above the turn whose call started this one. */
  constructor(limits: Agent['limits'], { steps, toolCalls, tokens }: Spent, above: TurnUse | undefined) {
    this.#limits = limits;
    this.#above = above;
    this.#steps = steps;
    this.#toolCalls = toolCalls;
    this.#earlierTokens = tokens;
  }

  get spent(): Spent {
    const { promptTokens, completionTokens } = this.usage;
    return { steps: this.#steps, toolCalls: this.#toolCalls, tokens: this.#earlierTokens + promptTokens + completionTokens };
  }

  /** A model call begins, unless a limit is reached. */
  beginStep(): ReachedLimit | undefined {
    const reached = this.#reached(0);
    if (!reached) for (let use: TurnUse | undefined = this; use; use = use.#above) use.#steps++;
    return reached;
  }

  /**
   * Tool calls begin, unless a limit is reached: that of tool calls, or one that allows no model
   * call after them.
   * @param isLast whether no model call follows in this turn.
   */
  beginCalls(count: number, isLast: boolean): ReachedLimit | undefined {
    const reached = this.#reached(count, isLast);
    if (!reached) for (let use: TurnUse | undefined = this; use; use = use.#above) use.#toolCalls += count;
    return reached;
  }

  /** Adds the tokens of a model call. */
  add(usage: Usage): void {
    for (let use: TurnUse | undefined = this; use; use = use.#above) use.usage = addUsage(use.usage, usage);
  }

  /** The places of an entry's calls in the tree. */
  slotsOf(entry: string, limit: number): ChildSlots {
    if (this.#above) return this.#above.slotsOf(entry, limit);
    this.#slots ??= new Map();
    const slots = this.#slots.get(entry) ?? new ChildSlots(limit);
    this.#slots.set(entry, slots);
    return slots;
  }

  /** The first limit that is reached, of this turn or of one above. */
  #reached(calls: number, isLast = false): ReachedLimit | undefined {
    for (let use: TurnUse | undefined = this; use; use = use.#above) {
      const { steps, toolCalls, tokens } = use.spent;
      const would = { steps: isLast ? 0 : steps, toolCalls: toolCalls + calls, tokens };
      const reached = reachedLimit(use.#limits, would);
      if (reached) return reached;
    }
    return undefined;
  }
}

/** The limit that another step would exceed, if any. */
function reachedLimit(limits: Agent['limits'], would: Spent): ReachedLimit | undefined {
  const reached = (limit: ReachedLimit['limit'], what: string) => ({
    limit,
    text: `The agent reached its limit of ${what} before it finished.`,
  });
  if (would.steps >= limits.steps) return reached('max_steps', `${limits.steps} model calls`);
  if (would.toolCalls > limits.toolCalls) return reached('max_tool_calls', `${limits.toolCalls} tool calls`);
  if (would.tokens >= limits.tokens) return reached('max_tokens', `${limits.tokens} tokens`);
  return undefined;
}
