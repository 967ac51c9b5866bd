import type { Account } from '../base/slack.js';

const ENTITIES: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&amp;': '&' };

/**
 * The text of a message as a person reads it, links as Markdown. Slack writes mentions, channels
 * and links as `<…>`, and escapes three characters.
 */
export function plainText(text: string, account: Account): string {
  const shown = text.replace(/<([^<>]*)>/g, (_, inner: string) => reference(inner, account));
  return shown.replace(/&(?:lt|gt|amp);/g, (entity) => ENTITIES[entity] ?? entity);
}

function reference(inner: string, account: Account): string {
  const bar = inner.indexOf('|');
  const target = bar === -1 ? inner : inner.slice(0, bar);
  const label = bar === -1 ? undefined : inner.slice(bar + 1);
  if (target === `@${account.user}`) return `@${account.name}`;
  if (target.startsWith('@')) return `@${label ?? target.slice(1)}`;
  if (target.startsWith('#')) return `#${label ?? target.slice(1)}`;
  if (target.startsWith('!')) return label ?? `@${target.slice(1).split('^')[0]}`;
  const address = target.replace(/^mailto:/, '');
  return label === undefined || label === address ? address : `[${label}](${target})`;
}
