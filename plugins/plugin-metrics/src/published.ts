import type { TurnRecord, Usage } from '@plugboard/kernel/contracts';

/*
 * What the diagnostics channels publish (docs/guides/diagnostics.md), as far as it is measured.
 * Fields that are added at the end may be missing.
 */

/** On `plugboard.http`. */
export interface PublishedRequest {
  readonly method: string;
  /** The path of the route; undefined if none matches. */
  readonly route?: string | undefined;
  /** Undefined if no reply was sent. */
  readonly status?: number | undefined;
  /** As in the request's log line: `ok`, `client_error`, `cancelled_by_client` … */
  readonly outcome?: string | undefined;
}

/** On `plugboard.turn`. */
export interface PublishedTurn {
  readonly turnId: string;
  readonly request: { readonly target: { readonly name: string } };
  readonly status?: string | undefined;
  readonly usage?: Usage | undefined;
  readonly record?: TurnRecord | undefined;
}

/** On `plugboard.tool` and `plugboard.tool.abandoned`. */
export interface PublishedTool {
  readonly turn: { readonly id: string };
  /** Its name at the model. */
  readonly name: string;
  /** Empty if the agent has no such tool. */
  readonly entry?: string | undefined;
  readonly isError?: boolean | undefined;
  readonly error?: unknown;
}

/** On `plugboard.store`. */
export interface PublishedStoreCall {
  readonly operation: string;
  readonly error?: unknown;
}

/** On `plugboard.charge`, once for each model call that is charged. */
export interface PublishedCharge {
  readonly agent: string;
  /** The model connection. */
  readonly model: string;
  readonly currency: string;
  /** A decimal number. Undefined if the connection has no price. */
  readonly cost: string | undefined;
}
