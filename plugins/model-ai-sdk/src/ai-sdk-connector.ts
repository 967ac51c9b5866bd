import type { LanguageModelV4 } from '@ai-sdk/provider';
import {
  type Clock,
  type Description,
  type IdSource,
  type Lifecycle,
  type Logger,
  type ModelConnector,
  ModelError,
  type ModelEvent,
  type ModelRequest,
  parseDuration,
  parseSize,
} from '@plugboard/kernel';
import { AddressPolicy } from '@plugboard/kernel/contracts';
import { AnswerReader } from './answer/answer-reader.js';
import { PartBatches } from './answer/part-batches.js';
import type { AiSdkConfig } from './config.js';
import { isAiSdkError } from './failure/ai-sdk-error.js';
import { Failures } from './failure/failures.js';
import { HeldAnswer, heldAnswers } from './http/held-answer.js';
import { watchedFetch } from './http/watched-fetch.js';
import { TurnImages } from './images/turn-images.js';
import { loadModel } from './provider/load-provider.js';
import { probe } from './provider/probe.js';
import { kindOf, type ProviderKind, withBreakpoints } from './provider/provider-kind.js';
import { telemetryName } from './provider/telemetry-name.js';
import { untilAborted } from './provider/until-aborted.js';
import { modelFingerprint } from './request/answer-data.js';
import { callOptions, FEATURES, supportsParam } from './request/call-options.js';
import type { MediaSource } from './request/media.js';
import { promptOf } from './request/prompt.js';
import { withPossibleThinking } from './request/thinking.js';

interface Dependencies {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
  /** The entry, for messages: `models.fast`. */
  readonly entry: string;
  /** The folder of the configuration. */
  readonly folder: string;
}

/** Milliseconds for the package to prepare the request of the probe. */
const PROBE_LIMIT = 5000;

/** The package's model, once it is loaded. */
interface Loaded {
  readonly model: LanguageModelV4;
  readonly kind: ProviderKind;
  readonly supportedUrls: readonly RegExp[];
  readonly refusedParams: ReadonlySet<string>;
}

/** A connection to a model through a provider package of the AI SDK. */
export class AiSdkConnector implements ModelConnector, Lifecycle {
  readonly model: string;
  readonly contextWindow: number;
  readonly input: readonly ('text' | 'image')[];
  readonly #config: AiSdkConfig;
  readonly #dependencies: Dependencies;
  readonly #failures: Failures;
  readonly #fetch: typeof fetch;
  readonly #images: TurnImages;
  /** Identifies the model and the account in the data that is attached to messages (AI-9). */
  readonly #fingerprint: string;
  #loaded: Loaded | undefined;

  constructor(config: AiSdkConfig, dependencies: Dependencies) {
    this.model = config.model;
    this.contextWindow = config.contextWindow;
    this.input = config.input;
    this.#config = config;
    this.#dependencies = dependencies;
    const { provider, model, apiKey = '', baseUrl = '', credentials, headers, settings, idleTimeout, allowPrivate } = config;
    this.#images = new TurnImages({ limit: parseSize(config.imageLimit), addresses: new AddressPolicy(() => allowPrivate) });
    const host = baseUrl === '' ? '' : new URL(baseUrl).host;
    const secrets = [apiKey, ...Object.values(credentials), ...Object.values(headers), baseUrl, host].filter(
      (text) => text !== '',
    );
    this.#failures = new Failures({ secrets, idleTimeout, model, entry: dependencies.entry });
    this.#fetch = watchedFetch(dependencies.clock, parseDuration(idleTimeout), this.#failures);
    this.#fingerprint = modelFingerprint(provider, model, baseUrl, apiKey, credentials, settings);
  }

  supportsParam(param: string): boolean {
    return supportsParam(param, this.#loaded?.kind) && !this.#loaded?.refusedParams.has(param);
  }

  get provider(): string | undefined {
    return this.#loaded && telemetryName(this.#loaded.model.provider);
  }

  describe(): readonly Description[] {
    return [{ kind: 'detail', label: 'provider', text: this.#config.provider }];
  }

  /** Loads the package, and lets it check the entry without a request (AI-1, AI-14). */
  async start(signal: AbortSignal): Promise<void> {
    const { log, folder } = this.#dependencies;
    let isProbe = true;
    const request: typeof fetch = (input, init) =>
      isProbe
        ? Promise.resolve(new Response('', { headers: { 'content-type': 'text/event-stream' } }))
        : this.#fetch(input, init);
    const model = await loadModel(this.#config, folder, request);
    const kind = kindOf(model.provider, this.#config.model);
    const limited = AbortSignal.any([signal, AbortSignal.timeout(PROBE_LIMIT)]);
    const { refused, unknownModel } = await probe(model, callOptions({ params: {}, tools: [] }, this.#config, kind), limited);
    isProbe = false;
    if (unknownModel !== undefined) log.warn({ model: this.model }, unknownModel);
    const urls = await model.supportedUrls;
    this.#loaded = {
      model,
      kind,
      supportedUrls: Object.entries(urls).flatMap(([type, patterns]) => (/^(image\/\*|\*|\*\/\*)$/.test(type) ? patterns : [])),
      refusedParams: new Set(refused.flatMap((feature) => FEATURES.get(feature) ?? [])),
    };
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[], void> {
    signal.throwIfAborted();
    const left = new AbortController();
    const { clock, ids } = this.#dependencies;
    const held = new HeldAnswer(request.account);
    const reader = new AnswerReader(this.#fingerprint, this.#failures, ids, () => clock.now(), held, request.streamedTools ?? []);
    let batches: PartBatches | undefined;
    let hasShown = false;
    try {
      const sent = AbortSignal.any([signal, left.signal]);
      batches = await heldAnswers.run(held, () => this.#send(request, sent));
      while (!reader.hasEnded) {
        const parts = await batches.next();
        const { events, failure } = parts ? reader.take(parts) : reader.end();
        signal.throwIfAborted();
        // Until the first event, nothing was shown and the runtime may retry (AI-2).
        if (events.length > 0 && (failure === undefined || hasShown)) {
          hasShown = true;
          yield events;
        }
        if (failure) throw failure;
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw this.#failures.of(error, clock.now());
    } finally {
      if (reader.hasEnded) void batches?.finish();
      else {
        left.abort();
        batches?.cancel();
      }
      held.release();
    }
  }

  /** Sends the request. Files of the history that the package refuses are left out. */
  async #send(request: ModelRequest, signal: AbortSignal): Promise<PartBatches> {
    try {
      return await this.#ask(request, false, signal);
    } catch (error) {
      if (!isAiSdkError(error, 'UnsupportedFunctionalityError')) throw error;
      return await this.#ask(request, true, signal);
    }
  }

  async #ask(request: ModelRequest, omitsFiles: boolean, signal: AbortSignal): Promise<PartBatches> {
    const { model, kind, supportedUrls } = this.#running();
    const media: MediaSource = {
      takesUrl: (url, type) => supportedUrls.some((pattern) => pattern.test(url)) && !(kind.needsImageType && type === 'image/*'),
      fetch: (url) => this.#images.fetch(url, request.account, signal),
      omitsFiles,
    };
    const mayCall = request.tools.length > 0 && request.params.tool_choice !== 'none';
    const prompt = await promptOf(request.messages, this.#fingerprint, media, kind, mayCall);
    const asked = model.doStream({
      ...withPossibleThinking(callOptions(request, this.#config, kind), prompt, kind),
      prompt: this.#config.promptCaching ? withBreakpoints(prompt, kind) : prompt,
      headers: request.headers,
      includeRawChunks: kind.namespace !== 'anthropic', // for the MessageGuard: its package has its own
      abortSignal: signal,
    });
    const { stream } = await untilAborted(asked, signal);
    return new PartBatches(stream);
  }

  #running(): Loaded {
    if (this.#loaded) return this.#loaded;
    throw new ModelError('the connection has not started.', { retryable: false });
  }
}
