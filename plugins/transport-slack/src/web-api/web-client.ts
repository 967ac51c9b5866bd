import type { webApi } from '@slack/bolt';

export type Bolt = typeof import('@slack/bolt');
export type WebClient = webApi.WebClient;
export type WebClientOptions = webApi.WebClientOptions;

/** Milliseconds for one call of the Web API. */
const CALL_TIMEOUT = 8_000;

/** Loads Bolt. Nothing of it is loaded before an entry starts. */
export async function loadBolt(): Promise<Bolt> {
  return (await import('@slack/bolt')).default;
}

/**
 * The options of a client whose calls end with the signal, and are not repeated by themselves.
 * @param timeout milliseconds for one call.
 */
export function clientOptions(apiUrl: string, signal: AbortSignal, timeout = CALL_TIMEOUT): WebClientOptions {
  return {
    slackApiUrl: apiUrl,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    timeout,
    logger: new SilentLogger(),
    allowAbsoluteUrls: false,
    fetch: (url, init) => fetch(url, { ...init, signal: AbortSignal.any([signal, ...(init?.signal ? [init.signal] : [])]) }),
  };
}

/**
 * The logger that Bolt gets. What matters is said by the entry itself, in its own words; Bolt's
 * lines have payloads and addresses with tickets.
 */
export class SilentLogger {
  debug(): void {}
  info(): void {}
  warn(): void {}
  error(): void {}
  setName(): void {}
  setLevel(): void {}
  getLevel(): webApi.LogLevel {
    return 'error' as webApi.LogLevel;
  }
}
