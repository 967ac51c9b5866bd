import type { Message } from './message.js';
import type { ToolDeclaration } from './model-connector.js';
import type { Principal } from './principal.js';

/** One request's whole work, as interceptors and the agent loop are given it. */
export interface Turn {
  readonly id: string;
  /** The agent's name, or the raw model's. */
  readonly agent: string;
  readonly principal: Principal;
  /** `api:<key>`, where the turn belongs to a session. */
  readonly session: string | undefined;
  /** All that the model is to see, history included, oldest first; a system message only where the caller sent one. */
  readonly messages: readonly Message[];
  /** Tools that the caller brought and will run. */
  readonly clientTools: readonly ToolDeclaration[];
  /** Sampling parameters by their names on the wire, the agent's own already laid over the caller's. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Whether anyone reads the answer as it is written. */
  readonly incremental: boolean;
  readonly requestId: string;
  /** What the caller attached, for logs and traces. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborted when the turn is to end: the caller has gone, its time is over, the server stops. */
  readonly signal: AbortSignal;
}
