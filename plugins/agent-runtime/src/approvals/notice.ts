import type { Target } from '@plugboard/kernel/contracts';
import type { NewApproval } from './approval.js';

/** Characters of the arguments that a person is shown. */
const MAX_ARGUMENTS = 600;

/**
 * Characters that change how other text looks: controls, marks of the writing direction, zero
 * width.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are replaced
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g;

/** The text that asks a person to decide, with a code for each call. */
export function approvalNotice(
  approvals: readonly Pick<NewApproval, 'call' | 'code'>[],
  visibility: Target['toolVisibility'],
): string {
  const [only, ...others] = approvals;
  if (!only) return '';
  if (others.length === 0) return `${describe(only, visibility)}\n\n${reply(only)}.`;
  const entries = approvals.map((approval) => `${describe(approval, visibility)}\n${reply(approval)}.`);
  return `${entries.join('\n\n')}\n\nReply \`approve all\` or \`deny all\` for all ${approvals.length}.`;
}

function describe({ call }: Pick<NewApproval, 'call'>, visibility: Target['toolVisibility']): string {
  if (visibility === 'none') return 'An action needs approval.';
  const name = code(`${call.tool.entry}/${call.tool.name}`);
  if (visibility === 'names') return `The tool ${name} needs approval.`;
  return `The tool ${name} needs approval, with these arguments:\n${code(argumentsOf(call.arguments))}`;
}

function reply({ code }: Pick<NewApproval, 'code'>): string {
  return `Reply \`approve ${code}\` or \`deny ${code}\``;
}

function argumentsOf(text: string): string {
  const line = text.trim() === '' ? '{}' : compact(text);
  if (line.length <= MAX_ARGUMENTS) return line;
  return `${line.slice(0, MAX_ARGUMENTS).toWellFormed()}… (shortened: ${line.length} characters in total)`;
}

function compact(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

/** A code span, which the text inside cannot end. */
function code(text: string): string {
  const shown = text.replaceAll(INVISIBLE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const longest = Math.max(0, ...(shown.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = '`'.repeat(longest + 1);
  return longest === 0 ? `\`${shown}\`` : `${fence} ${shown} ${fence}`;
}
