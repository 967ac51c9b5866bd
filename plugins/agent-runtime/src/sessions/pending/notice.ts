import { parseJson, type Target } from '@plugboard/kernel/contracts';
import type { NewApproval } from './approval.js';

/** Characters of a text, of the name of an argument, and of an object or list, that are shown. */
const MAX_TEXT = 200;
const MAX_NAME = 60;
const MAX_STRUCTURE = 1_000;
const MAX_ARGUMENTS = 50;

/**
 * Characters that change how other text looks, or look like nothing: controls, marks of the writing
 * direction, spaces other than the usual one, fillers.
 */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

type Asking = Pick<NewApproval, 'call' | 'code' | 'changed'>;

/**
 * The text that asks a person to decide, with a code for each call. Made by the server alone
 * (S-74).
 */
export function approvalNotice(approvals: readonly Asking[], visibility: Target['toolVisibility']): string {
  const [only, ...others] = approvals;
  if (!only) return '';
  if (others.length === 0) return `${describe(only, visibility)}\n\n${reply(only)}.`;
  const entries = approvals.map((approval) => `${describe(approval, visibility)}\n${reply(approval)}.`);
  return `${entries.join('\n\n')}\n\nReply \`approve all ${only.code}\` or \`deny all\` for all ${approvals.length}.`;
}

/** The text that says which calls did not run, and why, before the answer to something else. */
export function deniedNotice(
  denied: readonly { readonly call: NewApproval['call']; readonly why: string }[],
  visibility: Target['toolVisibility'],
): string {
  const lines = denied.map(({ call, why }) => {
    const what = visibility === 'none' ? 'An action' : `The call of the tool ${toolOf(call)}`;
    return `${what} that waited for approval was denied: ${why}.`;
  });
  return lines.join('\n');
}

/** The text about a decision that was taken, while results of the caller are missing. */
export function keptNotice(owed: readonly string[]): string {
  return owed.length === 0 ? '' : `The decision is kept, and takes effect with the results of these calls: ${owed.join(', ')}.`;
}

function describe({ call, changed }: Asking, visibility: Target['toolVisibility']): string {
  if (visibility === 'none') return 'An action needs approval.';
  if (visibility === 'names') return `The tool ${toolOf(call)} needs approval.`;
  return `The tool ${toolOf(call)} needs approval, with these arguments:\n${code(argumentsOf(changed ?? call.arguments))}`;
}

function toolOf({ tool }: NewApproval['call']): string {
  return code(`${tool.entry}/${tool.name}`);
}

function reply({ code }: Asking): string {
  return `Reply \`approve ${code}\` or \`deny ${code}\``;
}

/** The arguments as JSON, each value shortened for itself: none can push another one out. */
function argumentsOf(text: string): string {
  try {
    return shownFields(parseJson(text) as object);
  } catch {
    return shortened(text, MAX_TEXT);
  }
}

function shownFields(value: object): string {
  const entries = Object.entries(value);
  const fields = entries
    .slice(0, MAX_ARGUMENTS)
    .map(([name, one]) => `${JSON.stringify(shortened(name, MAX_NAME))}:${shown(one)}`);
  if (entries.length > MAX_ARGUMENTS) fields.push(`… (shortened: ${entries.length} arguments in total)`);
  return `{${fields.join(',')}}`;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shortened(value, MAX_TEXT));
  const text = JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'string' ? shortened(inner, MAX_TEXT) : inner));
  return shortened(text, MAX_STRUCTURE, 0);
}

/** @param end characters of the end that are shown: what matters may stand at either. */
function shortened(text: string, limit: number, end = Math.floor(limit / 4)): string {
  if (text.length <= limit) return text;
  const begin = text.slice(0, limit - end).toWellFormed();
  const whole = `… (shortened: ${text.length} characters in total)`;
  return end === 0 ? begin + whole : `${begin}${whole} …${text.slice(-end).toWellFormed()}`;
}

/** A code span, which the text inside cannot end. */
function code(text: string): string {
  const visible = text.replaceAll(INVISIBLE, (char) => escapeOf(char.codePointAt(0) ?? 0));
  const longest = Math.max(0, ...(visible.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = '`'.repeat(longest + 1);
  return longest === 0 ? `\`${visible}\`` : `${fence} ${visible} ${fence}`;
}

function escapeOf(point: number): string {
  return point > 0xffff ? `\\u{${point.toString(16)}}` : `\\u${point.toString(16).padStart(4, '0')}`;
}
