import { type JsonSchema, parseDuration, parseSize } from '@plugboard/kernel';
import { ProjectQuotaExceeded } from '@plugboard/kernel/contracts';

/** The options that every store has: how long it keeps sessions, and how much of a project. */
export const keptOptions = {
  ttl: {
    type: 'string',
    format: 'duration',
    description: 'How long a session is kept after its last turn.',
    default: '30d',
  },
  maxSessionsPerProject: {
    type: 'integer',
    minimum: 1,
    description: 'Maximum number of sessions of one project. Beyond it, no new ones are created.',
    default: 100_000,
  },
  maxBytesPerProject: {
    type: 'string',
    format: 'size',
    description:
      'Maximum size of what one project stores, as JSON. Beyond it, no turn begins until something is deleted or expires.',
    default: '10gb',
  },
} as const satisfies Record<string, JsonSchema>;

export interface ProjectQuotas {
  /** Maximum number of sessions of one project. */
  readonly maxSessions: number;
  /** Bytes that one project stores: messages, documents, metadata, calls, records. */
  readonly maxBytes: number;
}

/** The most rows of a kind. */
export interface RowCaps {
  /** Idempotency records. */
  readonly maxRecords?: number | undefined;
  /** Keys that one entry has in `ctx.state`. */
  readonly maxStateKeys?: number | undefined;
}

/** What a store keeps. */
export interface StoreLimits {
  /** Milliseconds from a session's last turn to its expiry. */
  readonly ttl: number;
  readonly quotas: ProjectQuotas;
  /** By default those of the contracts. */
  readonly caps?: RowCaps | undefined;
}

/** Reads these options. */
export function keptBy(config: {
  readonly ttl: string;
  readonly maxSessionsPerProject: number;
  readonly maxBytesPerProject: string;
}): StoreLimits {
  const quotas = { maxSessions: config.maxSessionsPerProject, maxBytes: parseSize(config.maxBytesPerProject) };
  return { ttl: parseDuration(config.ttl), quotas };
}

/**
 * Checks that a project may store so many bytes more than it does.
 *
 * @param isNew whether they make a new session. Called only if the project has reached its number
 *   of sessions.
 * @throws ProjectQuotaExceeded
 */
export function assertFits(
  { maxSessions, maxBytes }: ProjectQuotas,
  used: { readonly sessions: number; readonly bytes: number },
  bytes: number,
  isNew: () => boolean,
): void {
  if (used.bytes + bytes > maxBytes) throw new ProjectQuotaExceeded('maxBytesPerProject', maxBytes);
  if (used.sessions >= maxSessions && isNew()) throw new ProjectQuotaExceeded('maxSessionsPerProject', maxSessions);
}
