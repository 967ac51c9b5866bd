import type { Attributes } from '@opentelemetry/api';
import type { Extensions, Logger, ModelConnector, Turn } from '@plugboard/kernel';
import { addUsage, NO_USAGE, type TurnRecord, type TurnRequest, type Usage } from '@plugboard/kernel/contracts';
import { argumentsAttribute, resultAttribute } from './content.js';
import { errorType } from './error-type.js';
import { providerOf, usageAttributes } from './model-attributes.js';
import type { OpenSpan, OpenSpans } from './open-spans.js';
import type { RequestSpans } from './request-spans.js';
import { callerOf, traceHeaders } from './trace-context.js';
import { type Watcher, watchChannel } from './watch-channel.js';

/** Characters of a tool's name: a model may write any. */
const MAX_NAME = 200;

/** What `plugboard.turn` publishes. */
interface PublishedTurn {
  readonly turnId: string;
  readonly request: TurnRequest;
  /** At the end: the finish reason, or the code of the failure. */
  readonly status?: string;
  /** At the end of a turn that did not fail. */
  readonly usage?: Usage;
  readonly record?: TurnRecord | undefined;
}

/** What `plugboard.tool` publishes. */
interface PublishedCall {
  readonly turn: Turn;
  readonly id: string;
  /** Empty if no entry has the tool. */
  readonly entry?: string | undefined;
  /** The name at the model. */
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
  readonly headers: Record<string, string>;
  /** At the end, unless the call waits for a person. */
  readonly isError?: boolean;
  readonly content?: string;
  readonly error?: unknown;
}

/** A turn that runs, as the spans below it see it. */
export class TracedTurn {
  readonly span: OpenSpan;
  /** Spans of model and tool calls that have not ended. */
  readonly #calls = new Set<OpenSpan>();
  #usage: Usage | undefined;
  #conversation: string | undefined;

  constructor(span: OpenSpan) {
    this.span = span;
  }

  get attributes(): Attributes {
    return { ...usageAttributes(this.#usage), 'gen_ai.conversation.id': this.#conversation };
  }

  /** Adds the tokens of a model call: a turn has the sum of its own (OB-1). */
  addUsage(usage: Usage): void {
    this.#usage = addUsage(this.#usage ?? NO_USAGE, usage);
  }

  /** @param conversation the opaque id of the session. */
  join(conversation: string | undefined): void {
    this.#conversation ??= conversation;
  }

  begin(call: OpenSpan): void {
    this.#calls.add(call);
  }

  end(call: OpenSpan, attributes: Attributes, errorType?: string): void {
    this.#calls.delete(call);
    call.end(attributes, errorType);
  }

  /** Ends what the turn leaves behind: a model or a tool that ignores its signal. */
  endCalls(errorType: string): void {
    for (const call of this.#calls) call.end({}, errorType);
  }
}

interface TurnSpansOptions {
  readonly spans: OpenSpans;
  readonly requests: RequestSpans;
  readonly models: Extensions<ModelConnector>;
  /** Whether spans contain arguments and results of tools. */
  readonly hasContent: () => boolean;
}

/** The spans of turns and of their tool calls. */
export class TurnSpans {
  readonly #options: TurnSpansOptions;
  /** The running turns by id. */
  readonly #turns = new Map<string, TracedTurn>();
  readonly #calls = new WeakMap<object, { readonly turn: TracedTurn; readonly span: OpenSpan }>();

  constructor(options: TurnSpansOptions) {
    this.#options = options;
  }

  watch(log: Logger): () => void {
    const turns: Watcher<PublishedTurn> = { start: (turn) => this.#start(turn), end: (turn) => this.#end(turn) };
    const calls: Watcher<PublishedCall> = { start: (call) => this.#startCall(call), end: (call) => this.#endCall(call) };
    const unwatch = [watchChannel('plugboard.turn', turns, log), watchChannel('plugboard.tool', calls, log)];
    return () => {
      for (const end of unwatch) end();
      this.#turns.clear();
    };
  }

  /** A turn that runs. Undefined if it began before the plugin started. */
  get(turnId: string): TracedTurn | undefined {
    return this.#turns.get(turnId);
  }

  #start({ turnId, request }: PublishedTurn): void {
    const { spans, models } = this.#options;
    const { target } = request;
    const model = models.get(target.connection);
    const span = spans.start(`invoke_agent ${target.name}`, {
      ...this.#originOf(request),
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': target.name,
        'gen_ai.provider.name': providerOf(model),
        'gen_ai.request.model': model?.model,
        'plugboard.turn.id': turnId,
      },
    });
    this.#turns.set(turnId, new TracedTurn(span));
  }

  /** What the span of a turn is below of. A socket lives longer than a trace should. */
  #originOf({ parent, requestId, connectionId }: TurnRequest): Pick<Parameters<OpenSpans['start']>[1], 'parent' | 'cause'> {
    const { requests } = this.#options;
    if (parent) return { parent: callerOf(parent.headers) }; // the span of the tool call, which gave them
    if (connectionId === undefined) return { parent: requests.contextOf(requestId) };
    return { cause: requests.contextOf(connectionId) };
  }

  #end({ turnId, status = 'crashed', usage, record }: PublishedTurn): void {
    const turn = this.#turns.get(turnId);
    if (!turn) return;
    this.#turns.delete(turnId);
    const failure = usage === undefined ? status : undefined;
    turn.endCalls(failure ?? 'cancelled');
    turn.span.end(
      {
        ...turn.attributes,
        'gen_ai.response.finish_reasons': failure === undefined ? [status] : undefined,
        'plugboard.queue.duration': record && record.queued / 1000,
      },
      failure,
    );
  }

  #startCall(call: PublishedCall): void {
    const turn = this.#turns.get(call.turn.id);
    if (!turn) return;
    const name = call.name.slice(0, MAX_NAME);
    const span = this.#options.spans.start(`execute_tool ${name}`, {
      parent: turn.span.context,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        'gen_ai.tool.call.id': call.id,
        'gen_ai.tool.type': 'function',
        'plugboard.tool.entry': call.entry || undefined,
      },
    });
    Object.assign(call.headers, traceHeaders(span.context));
    turn.begin(span);
    this.#calls.set(call, { turn, span });
  }

  #endCall(call: PublishedCall): void {
    const known = this.#calls.get(call);
    if (!known) return;
    const { turn, span } = known;
    const content = span.isSampled && this.#options.hasContent();
    const attributes = content ? { ...argumentsAttribute(call.arguments), ...resultAttribute(call.content) } : {};
    const failure = call.error === undefined ? undefined : errorType(call.error, call.turn.signal);
    turn.end(span, attributes, failure ?? (call.isError ? 'tool_error' : undefined));
  }
}
