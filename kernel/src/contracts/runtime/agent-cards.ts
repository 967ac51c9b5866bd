import type { Principal } from '../callers/principal.js';
import type { TurnToolResult } from '../events/event.js';
import type { Tool } from '../tools/tool-source.js';
import type { Target } from './target.js';

/**
 * What callers may know of an agent, and running one of its tools without a model.
 *
 * An administrator is a principal with the scope `admin`, or any caller of an open server, as there
 * everybody is one caller. What the agent's `toolVisibility` hides is hidden from administrators
 * too.
 *
 * @experimental
 */
export interface AgentCards {
  /** Describes an agent or raw model. Undefined if there is none that the principal may use. */
  card(name: string, principal: Principal): Promise<AgentCard | undefined>;
  /**
   * Runs a tool as if the model had called it: arguments are validated, interceptors run around it,
   * and the limits of the tool, the caller and the server apply. A failure of the tool is a result.
   *
   * @returns undefined if the principal may use no such agent, or if the agent has no such tool.
   * @throws TurnError `forbidden` if the principal is no administrator, or if the agent hides its
   *   tools; `approval_pending` if a person must approve the call first; `overloaded`,
   *   `rate_limited`, `draining`.
   */
  runTool(run: ToolRun, principal: Principal): Promise<Omit<TurnToolResult, 'type' | 'id'> | undefined>;
}

/** An agent or raw model, as its callers may know it. @experimental */
export interface AgentCard {
  readonly name: string;
  readonly kind: Target['kind'];
  readonly description: string | undefined;
  /** The model connections, in order of preference. */
  readonly connections: readonly string[];
  /** What its models read. */
  readonly input: Target['input'];
  readonly toolVisibility: Target['toolVisibility'];
  /** The tools. None if the agent hides them; names only if it hides what they do. */
  readonly tools: readonly {
    readonly entry: string;
    readonly name: string;
    readonly details?:
      | (Required<Pick<Tool, 'description' | 'inputSchema' | 'effect'>> & {
          /** Whether a person approves each call. */
          readonly needsApproval: boolean;
        })
      | undefined;
  }[];
  /** For administrators: the prompt and the sampling parameters of the configuration. */
  readonly settings?: { readonly system: string | undefined; readonly params: Readonly<Record<string, unknown>> } | undefined;
}

/** A tool to run without a model. @experimental */
export interface ToolRun {
  readonly agent: string;
  readonly entry: string;
  readonly tool: string;
  /** As JSON text. */
  readonly arguments: string;
  /** Whether the person who runs it approves the call. */
  readonly isApproved: boolean;
  readonly requestId: string;
  /** Ends the call, for example because its caller disconnects. */
  readonly signal: AbortSignal;
}
