import {
  type Clock,
  type Description,
  type IdSource,
  type Lifecycle,
  type ModelConnector,
  type ModelEvent,
  type ModelRequest,
  parseDuration,
} from '@plugboard/kernel';
import type { OpenAiConfig } from './config.js';
import { modelFingerprint } from './extra/connection-data.js';
import { Failures } from './failure/failures.js';
import { Redactor } from './failure/redactor.js';
import { ClientPool } from './http/client-pool.js';
import { type Endpoint, parseBaseUrl } from './http/endpoint.js';
import { ModelExchange } from './http/model-exchange.js';
import type { Dialect } from './provider/dialect.js';
import { describeDialect, resolveDialect } from './provider/resolve-dialect.js';
import { telemetryName } from './provider/telemetry-name.js';
import { requestBody } from './request/request-body.js';

/** The protocol's sampling parameters and its options for the use of tools. Others are not sent. */
const PARAMS: ReadonlySet<string> = new Set([
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'parallel_tool_calls',
  'prediction',
  'presence_penalty',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning_effort',
  'response_format',
  'seed',
  'stop',
  'temperature',
  'tool_choice',
  'top_logprobs',
  'top_p',
  'verbosity',
]);

/** A connection to a server that speaks chat completions. Sockets stay open between requests. */
export class OpenAiConnector implements ModelConnector, Lifecycle {
  readonly model: string;
  readonly provider: string;
  readonly contextWindow: number;
  readonly input: readonly ('text' | 'image')[];
  readonly #clock: Clock;
  readonly #ids: IdSource;
  readonly #idleTimeout: number;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #failures: Failures;
  readonly #config: OpenAiConfig;
  readonly #dialect: Dialect;
  /** Identifies the model in the data that it attaches to messages. */
  readonly #fingerprint: string;
  readonly #pool: ClientPool;

  constructor(config: OpenAiConfig, clock: Clock, ids: IdSource) {
    const { origin, host, path } = endpointOf(config);
    this.model = config.model;
    this.contextWindow = config.contextWindow;
    this.input = config.input;
    this.#clock = clock;
    this.#ids = ids;
    this.#idleTimeout = parseDuration(config.idleTimeout);
    this.#path = path;
    this.#config = config;
    this.#dialect = resolveDialect(config, host, config.model);
    this.provider = telemetryName(this.#dialect.provider, host);
    this.#fingerprint = modelFingerprint(origin, path, config.model);
    this.#headers = defaultHeaders(config.apiKey, this.#dialect.keyHeader, config.headers);
    const redactor = new Redactor([config.apiKey ?? '', ...Object.values(config.headers)], [origin, host]);
    this.#failures = new Failures(redactor, clock, config);
    this.#pool = new ClientPool(origin, parseDuration(config.connectTimeout));
  }

  supportsParam(param: string): boolean {
    return PARAMS.has(param) && !this.#dialect.omit.has(param);
  }

  describe(): readonly Description[] {
    return describeDialect(this.#dialect, this.#config);
  }

  /** Sends the request at once. Events wait until they are read. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<readonly ModelEvent[]> {
    const exchange = new ModelExchange({
      answer: {
        tools: request.tools,
        streamedTools: request.incremental ? (request.streamedTools ?? []) : [],
        fingerprint: this.#fingerprint,
        keepsReasoning: this.#keepsReasoning(request.messages),
        splitThinkTags: this.#dialect.thinkTags === 'split',
      },
      idleTimeout: this.#idleTimeout,
      failures: this.#failures,
      clock: this.#clock,
      ids: this.#ids,
      signal,
      account: request.account,
    });
    if (!signal.aborted) {
      const headers = mergeHeaders(this.#headers, request.headers);
      this.#pool.dispatch(
        { method: 'POST', path: this.#path, headers, body: requestBody(this.model, request, this.#dialect, this.#fingerprint) },
        exchange,
      );
    }
    return exchange.batches;
  }

  /** Servers want reasoning back in turns with tool calls. Images may follow the results. */
  #keepsReasoning(messages: ModelRequest['messages']): 'always' | 'with calls' | 'never' {
    if (this.#dialect.omit.has('reasoning')) return 'never';
    return messages.slice(-2).some(({ role }) => role === 'tool') ? 'always' : 'with calls';
  }

  /** Closes all sockets. The agent runtime, which uses the connection, has stopped before it. */
  async stop(): Promise<void> {
    await this.#pool.destroy();
  }
}

function endpointOf(config: OpenAiConfig): Endpoint {
  const endpoint = parseBaseUrl(config.baseUrl);
  if (typeof endpoint === 'string') throw new Error(`baseUrl ${endpoint}`);
  return endpoint;
}

type Headers = Readonly<Record<string, string>>;

/** Makes the headers of every request. @param keyHeader the header that carries the key. */
function defaultHeaders(apiKey: string | undefined, keyHeader: 'authorization' | 'api-key', configured: Headers): Headers {
  return mergeHeaders(
    {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'accept-encoding': 'identity',
      'user-agent': 'plugboard',
      ...(apiKey ? { [keyHeader]: keyHeader === 'authorization' ? `Bearer ${apiKey}` : apiKey } : {}),
    },
    configured,
  );
}

/** Adds headers, replacing those of the same name. Lower case, so that none is sent twice. */
function mergeHeaders(headers: Headers, more: Headers): Headers {
  let merged: Record<string, string> | undefined;
  for (const name in more) {
    merged ??= { ...headers };
    merged[name.toLowerCase()] = more[name] as string;
  }
  return merged ?? headers;
}
