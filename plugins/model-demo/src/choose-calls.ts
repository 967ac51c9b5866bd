import type { ToolDeclaration } from '@plugboard/kernel';
import { fillArguments } from './fill-arguments.js';
import { type Literals, literalsOf } from './literals.js';
import { readToolChoice } from './tool-choice.js';
import { fullNameWords, meaningfulWords, nameWords } from './words.js';

/** A call that a prompt asks for. */
export interface ChosenCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** How many tools one prompt may set off. */
const MOST_CALLS = 3;

/** What stands further back is not looked at: a pasted book is no request for a tool, and costs time. */
const LONGEST_PROMPT = 2000;

interface Candidate extends ChosenCall {
  /** The words of the prompt that speak for it. */
  readonly matched: ReadonlySet<string>;
  readonly score: number;
}

/** How the description of a tool begins that only looks. */
const LOOKS = /^(?:check|count|describe|fetch|find|get|give|list|look|read|retrieve|return|search|show|tell)(?:s|es)?\b/i;

/**
 * The calls that a prompt asks for in so many words, the likeliest first. Careful, because tools may change things: one that needs arguments is
 * called only when the prompt holds them and the first word of its name (`read` of `files__read_file`); any other when a word of its name is there,
 * or one of its description if that says that it only looks.
 *
 * @param choice the protocol's `tool_choice`.
 */
export function chooseCalls(whole: string, tools: readonly ToolDeclaration[], choice: unknown): readonly ChosenCall[] {
  const prompt = whole.slice(0, LONGEST_PROMPT);
  const literals = literalsOf(prompt);
  const { permitted, mustCall } = readToolChoice(choice, tools);
  const candidates = permitted.flatMap((tool) => candidateFor(tool, prompt, literals, mustCall));
  candidates.sort((a, b) => b.score - a.score);

  const chosen: Candidate[] = [];
  const covered = new Set<string>();
  for (const candidate of candidates) {
    const news = [...candidate.matched].some((word) => !covered.has(word));
    if (!news && !(mustCall && chosen.length === 0)) continue;
    chosen.push(candidate);
    for (const word of candidate.matched) covered.add(word);
    if (chosen.length === MOST_CALLS) break;
  }
  return chosen.map(({ name, arguments: filled }) => ({ name, arguments: filled }));
}

/** The tool as a candidate, or none where the prompt does not speak of it or lacks what it needs. */
function candidateFor(tool: ToolDeclaration, prompt: string, literals: Literals, mustCall: boolean): readonly Candidate[] {
  const filled = fillArguments(tool.inputSchema, prompt, literals);
  if (!filled) return [];

  const said = new Set(meaningfulWords(literals.rest));
  const own = nameWords(tool.name);
  const [purpose = ''] = tool.description.split(/[.!?](?:\s|$)/);
  const named = own.filter((word) => said.has(word));
  const entry = fullNameWords(tool.name).filter((word) => said.has(word) && !own.includes(word));
  const described = meaningfulWords(purpose).filter((word) => said.has(word) && !named.includes(word) && !entry.includes(word));

  const needsArguments = Array.isArray(tool.inputSchema.required) && tool.inputSchema.required.length > 0;
  const meant = needsArguments ? named.includes(own[0] ?? '') : named.length > 0 || (described.length > 0 && LOOKS.test(purpose));
  if (!meant && !mustCall) return [];
  const matched = new Set([...named, ...entry, ...described]);
  const score = 4 * named.length + 2 * entry.length + new Set(described).size - (own.length - named.length) / 2;
  return [{ name: tool.name, arguments: filled, matched, score }];
}
