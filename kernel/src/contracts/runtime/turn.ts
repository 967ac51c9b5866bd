import type { Principal } from '../callers/principal.js';
import type { Message } from '../messages/message.js';
import type { ToolDeclaration } from '../model/model-connector.js';

/** One turn, as interceptors and the agent loop receive it. @public */
export interface Turn {
  readonly id: string;
  /** Name of the agent or raw model. */
  readonly agent: string;
  readonly principal: Principal;
  /** `api:<key>` if the turn belongs to a session. */
  readonly session: string | undefined;
  /** The end user, as the request names it: the caller's own claim. */
  readonly user: string | undefined;
  /** The key of the transport's entry, such as `chat-completions`. Undefined if it names none. */
  readonly transport: string | undefined;
  /**
   * The agent's prompt. Undefined if it has none, or if the caller sent a system message instead.
   * An interceptor may change it. A system message that it adds to `messages` never replaces it.
   */
  readonly system: string | undefined;
  /** The conversation for the model, oldest first. A system message only if the caller sent one. */
  readonly messages: readonly Message[];
  /**
   * The agent's own tools, as the model knows them. An interceptor may leave some out or describe
   * them differently; a name that the agent does not have is dropped.
   */
  readonly tools: readonly ToolDeclaration[];
  /** Tools of the request, which the caller runs. */
  readonly clientTools: readonly ToolDeclaration[];
  /** Sampling parameters by their names in the protocol. The agent's own override the caller's. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Whether the answer is read while it is written. */
  readonly incremental: boolean;
  readonly requestId: string;
  /** Metadata of the request, for logs and traces. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborts when the turn must end: the caller left, its time is over, the server stops. */
  readonly signal: AbortSignal;
}
