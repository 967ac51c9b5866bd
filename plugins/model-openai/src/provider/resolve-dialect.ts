import type { Description } from '@plugboard/kernel';
import type { Dialect, DialectOptions } from './dialect.js';
import { PRESETS, type Preset, type Provider, providerOf } from './presets.js';

/** The dialect without a preset: the protocol itself. */
const PROTOCOL: Omit<Dialect, 'provider' | 'omit' | 'placeholder'> = {
  body: {},
  tokenParam: undefined,
  toolIds: 'any',
  schema: 'plain',
  emptyContent: null,
  roles: 'any',
  alwaysStream: false,
  thinkTags: 'keep',
  keyHeader: 'authorization',
};

/**
 * Combines the preset of the provider with the options of a connection. An option replaces what the
 * preset says; the fields of `body` and `omit` are added to the preset's.
 *
 * @param host of the base URL. It decides if `provider` is not set.
 */
export function resolveDialect(options: DialectOptions, host: string, model: string): Dialect {
  const provider = providerFor(options, host);
  const { omit = [], body = {}, placeholder, ...preset }: Preset = PRESETS[provider];
  const { body: ownBody, omit: ownOmit } = options;
  // Only the dialect's own options: the others, `apiKey` among them, must not be described.
  const set = Object.fromEntries(Object.entries(options).filter(([name, value]) => name in PROTOCOL && value !== undefined));
  return {
    ...PROTOCOL,
    ...preset,
    ...set,
    provider,
    body: { ...body, ...ownBody },
    omit: new Set([...omit, ...ownOmit]),
    placeholder: placeholder?.(model),
  };
}

function providerFor({ provider }: DialectOptions, host: string): Provider {
  return provider === undefined ? (providerOf(host) ?? 'none') : (provider as Provider);
}

/** The lines about a dialect: the provider, and what differs from the protocol. */
export function describeDialect(dialect: Dialect, { provider }: DialectOptions): readonly Description[] {
  const source = provider !== undefined ? 'set by provider' : dialect.provider === 'none' ? 'unknown host' : 'known by its host';
  const lines: Description[] = [{ kind: 'detail', label: 'provider', text: `${dialect.provider} (${source})` }];
  const differences = differencesOf(dialect);
  return differences === '' ? lines : [...lines, { kind: 'detail', label: 'requests', text: differences }];
}

/** `tokenParam max_tokens, toolIds alnum9, omit name seed` */
function differencesOf({ provider, omit, body, placeholder, ...dialect }: Dialect): string {
  const parts = Object.entries(dialect)
    .filter(([name, value]) => value !== PROTOCOL[name as keyof typeof PROTOCOL])
    .map(([name, value]) => `${name} ${value === '' ? '""' : value}`);
  // The values may be secret: only the names are shown.
  if (Object.keys(body).length > 0) parts.push(`body ${Object.keys(body).join(' ')}`);
  if (placeholder !== undefined) parts.push(`placeholder ${'signature' in placeholder ? 'signature' : 'reasoning'}`);
  if (omit.size > 0) parts.push(`omit ${[...omit].join(' ')}`);
  return parts.join(', ');
}
