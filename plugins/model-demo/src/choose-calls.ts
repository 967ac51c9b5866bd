import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { fillArguments } from './fill-arguments.js';
import { type Literals, literalsOf } from './literals.js';
import { fullNameWords, meaningfulWords, nameWords } from './words.js';

/** A tool call that matches a prompt. */
interface ChosenCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Tool calls per prompt. */
const MAX_CALLS = 3;

/** Characters of a prompt that are searched. A long pasted text is not a request for a tool. */
const SEARCHED_LENGTH = 2000;

interface Candidate extends ChosenCall {
  /** The words of the prompt that match the tool. */
  readonly matched: ReadonlySet<string>;
  readonly score: number;
}

/** First words of the description of a read-only tool. */
const READ_ONLY = /^(?:check|count|describe|fetch|find|get|give|list|look|read|retrieve|return|search|show|tell)(?:s|es)?\b/i;

/**
 * Chooses the calls that match a prompt, best match first. It is careful, because tools may change
 * things. A tool with required arguments is called only if the prompt contains them and the first
 * word of the tool's name (`read` of `files__read_file`). Any other tool is called if the prompt
 * contains a word of its name, or a word of its description if that is the one of a read-only tool.
 *
 * @param choice the protocol's `tool_choice`.
 */
export function chooseCalls(whole: string, tools: readonly ToolDeclaration[], choice: unknown): readonly ChosenCall[] {
  const prompt = whole.slice(0, SEARCHED_LENGTH);
  const literals = literalsOf(prompt);
  const { permitted, mustCall } = readToolChoice(choice, tools);
  const candidates = permitted.flatMap((tool) => candidateFor(tool, prompt, literals, mustCall));
  candidates.sort((a, b) => b.score - a.score);

  const chosen: Candidate[] = [];
  const covered = new Set<string>();
  for (const candidate of candidates) {
    const addsWords = [...candidate.matched].some((word) => !covered.has(word));
    if (!addsWords && !(mustCall && chosen.length === 0)) continue;
    chosen.push(candidate);
    for (const word of candidate.matched) covered.add(word);
    if (chosen.length === MAX_CALLS) break;
  }
  return chosen.map(({ name, arguments: filled }) => ({ name, arguments: filled }));
}

/**
 * The tool as a candidate; empty if the prompt does not mention it or lacks a required argument.
 */
function candidateFor(tool: ToolDeclaration, prompt: string, literals: Literals, mustCall: boolean): readonly Candidate[] {
  const filled = fillArguments(tool.inputSchema, prompt, literals);
  if (!filled) return [];

  const words = new Set(meaningfulWords(literals.rest));
  const own = nameWords(tool.name);
  const [purpose = ''] = tool.description.split(/[.!?](?:\s|$)/);
  const named = own.filter((word) => words.has(word));
  const entry = fullNameWords(tool.name).filter((word) => words.has(word) && !own.includes(word));
  const described = meaningfulWords(purpose).filter((word) => words.has(word) && !named.includes(word) && !entry.includes(word));

  const needsArguments = Array.isArray(tool.inputSchema.required) && tool.inputSchema.required.length > 0;
  const isMentioned = needsArguments
    ? named.includes(own[0] ?? '')
    : named.length > 0 || (described.length > 0 && READ_ONLY.test(purpose));
  if (!isMentioned && !mustCall) return [];
  const matched = new Set([...named, ...entry, ...described]);
  const score = 4 * named.length + 2 * entry.length + new Set(described).size - (own.length - named.length) / 2;
  return [{ name: tool.name, arguments: filled, matched, score }];
}

/** Which tools the model may call. */
interface ToolChoice {
  readonly permitted: readonly ToolDeclaration[];
  /** Whether the answer must be a call. */
  readonly mustCall: boolean;
}

/**
 * @param choice the protocol's `tool_choice`: `none`, `auto`, `required`, one tool, or a list of
 * allowed tools. Any other value means `auto`.
 */
function readToolChoice(choice: unknown, tools: readonly ToolDeclaration[]): ToolChoice {
  if (choice === 'none') return { permitted: [], mustCall: false };
  if (choice === 'required') return { permitted: tools, mustCall: true };
  if (typeof choice !== 'object' || choice === null) return { permitted: tools, mustCall: false };
  if ('function' in choice) return { permitted: tools.filter((tool) => tool.name === nameIn(choice.function)), mustCall: true };
  if ('allowed_tools' in choice && typeof choice.allowed_tools === 'object' && choice.allowed_tools !== null) {
    const { mode, tools: allowed } = choice.allowed_tools as { readonly mode?: unknown; readonly tools?: unknown };
    const names = Array.isArray(allowed) ? allowed.map((tool) => nameIn(tool?.function)) : [];
    return { permitted: tools.filter((tool) => names.includes(tool.name)), mustCall: mode === 'required' };
  }
  return { permitted: tools, mustCall: false };
}

function nameIn(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'name' in value ? value.name : undefined;
}
