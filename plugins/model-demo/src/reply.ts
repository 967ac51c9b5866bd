import type { Message } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { chooseCalls } from './choose-calls.js';
import { prompts, type ToolResult } from './conversation.js';
import { configuredName, plainName } from './words.js';

/** How much of a prompt, of a tool result and of the list of tools is repeated. */
const PROMPT_LENGTH = 200;
const RESULT_LENGTH = 1000;
const TOOLS_SHOWN = 6;

const REAL_MODEL =
  'For a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST and start the server again, ' +
  'or name a connection of your own under "models" in plugboard.yaml.';

/**
 * The answer without a tool call: what this model is, what it received, what it can do, and how to
 * get a real one.
 */
export function introduction(messages: readonly Message[], tools: readonly ToolDeclaration[]): string {
  return [
    "I am Plugboard's stand-in model: a small program that lets you try the server without an account. I understand nothing.",
    echo(messages),
    offer(tools),
    REAL_MODEL,
  ].join('\n\n');
}

/** The answer after tool calls: their results. */
export function report(results: readonly ToolResult[]): string {
  return [
    ...results.map(
      ({ tool, text }) => `I called ${configuredName(tool)}. It returned:\n\n${verbatim(truncate(text, RESULT_LENGTH))}`,
    ),
    `I am only a stand-in: I can call tools, but I do not understand their results. ${REAL_MODEL}`,
  ].join('\n\n');
}

/** Shows the content of the conversation, and so whether a session works. */
function echo(messages: readonly Message[]): string {
  const said = prompts(messages);
  const last = said.at(-1);
  const before = said.at(-2);
  const given = messages.filter((message) => message.role !== 'system').length;
  return [
    last === undefined ? 'You said nothing.' : `You said: ${quoted(last)}`,
    ...(before === undefined ? [] : [`Before that you said: ${quoted(before)}`]),
    given > 1
      ? `I received ${given} messages of this conversation, ${said.length} of them yours.`
      : 'I received no other message of this conversation.',
  ].join('\n');
}

function offer(tools: readonly ToolDeclaration[]): string {
  if (tools.length === 0) return 'This agent has no tools.';
  const shown = tools.slice(0, TOOLS_SHOWN).map((tool) => configuredName(tool.name));
  const more = tools.length > shown.length ? ` and ${tools.length - shown.length} more` : '';
  const example = tools.map((tool) => plainName(tool.name)).find((name) => chooseCalls(name, tools, 'auto').length > 0);
  return [
    `I call a tool of this agent when your message names it and contains its arguments (a "quoted text", a path, a number): ${shown.join(', ')}${more}.`,
    ...(example === undefined ? [] : [`Try: ${quoted(example)}.`]),
  ].join(' ');
}

/** A text whose lines Markdown must not join: as a code block, if it has several. */
function verbatim(text: string): string {
  if (!text.includes('\n')) return text;
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function quoted(text: string): string {
  return `"${truncate(text.trim(), PROMPT_LENGTH)}"`;
}

function truncate(text: string, length: number): string {
  if (text.length <= length) return text;
  const shown = text.slice(0, length).replace(/[\ud800-\udbff]$/, ''); // half of a surrogate pair
  return `${shown}… (${text.length - shown.length} more characters)`;
}
