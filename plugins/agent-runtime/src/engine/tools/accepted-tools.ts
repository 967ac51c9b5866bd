import { hash } from 'node:crypto';
import type { Tool, ToolSource } from '@plugboard/kernel';
import { toolMistake } from './tool-mistakes.js';

type Effect = NonNullable<Tool['effect']>;

/** From the most to the least harmless. */
const EFFECTS: readonly Effect[] = ['read', 'idempotent', 'write'];

interface AcceptedTool {
  readonly effect: Effect;
  readonly digest: string;
}

/** A tool as the runtime treats it. */
export interface JudgedTool {
  readonly effect: Effect;
  /** Whether it is new, or another one than when its source was listed first. */
  readonly isChanged: boolean;
}

/**
 * The tools that an operator could know when the configuration was put in force: those of the first
 * list of each source. What a source says of its tools later only tightens (S-73).
 */
export class AcceptedTools {
  readonly #known = new Map<ToolSource, ReadonlyMap<string, AcceptedTool>>();

  /** A source has listed its tools. Its first list is accepted, without malformed ones. */
  listed(source: ToolSource, tools: readonly Tool[]): void {
    if (this.#known.has(source)) return;
    const accepted = tools.filter((tool) => toolMistake(tool) === undefined);
    const known = accepted.map((tool): [string, AcceptedTool] => [tool.name, { effect: effectOf(tool), digest: digestOf(tool) }]);
    this.#known.set(source, new Map(known));
  }

  judge(source: ToolSource, tool: Tool): JudgedTool {
    const known = this.#known.get(source)?.get(tool.name);
    const effect = effectOf(tool);
    if (!known) return { effect, isChanged: true };
    const isTighter = EFFECTS.indexOf(effect) > EFFECTS.indexOf(known.effect);
    return { effect: isTighter ? effect : known.effect, isChanged: digestOf(tool) !== known.digest };
  }
}

function effectOf({ effect = 'write' }: Tool): Effect {
  return effect;
}

/** Of everything that a model or a person decides by. */
function digestOf({ description, inputSchema, effect }: Tool): string {
  const text = JSON.stringify([description, inputSchema, effect]) ?? '';
  return hash('sha256', text, 'base64');
}
