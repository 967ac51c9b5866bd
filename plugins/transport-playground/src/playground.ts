import type { AuthProvider, Extensions, Lifecycle } from '@plugboard/kernel';
import { HttpError, type HttpReply, type HttpRequest, type HttpRoute } from '@plugboard/transport-http';
import type { PlaygroundConfig } from './config.js';
import { type PageFile, readPageFiles } from './page-files.js';

/** The page's path. Its files are below. */
const PAGE = '/playground';

/**
 * Scripts, styles and connections of this server only. Text of a model or a tool cannot become a
 * script.
 */
const SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types lit-html dompurify',
].join('; ');

const SECURITY_HEADERS = {
  'content-security-policy': SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

/** What the page needs before a token is entered. Public, so it contains no secrets. */
interface PageSettings {
  readonly title: string;
  readonly version: string;
  readonly docs: string | null;
  readonly suggestions: readonly string[];
  /** Whether requests need a token. */
  readonly token: boolean;
  /** The API paths that the page can use and the server has. */
  readonly routes: readonly string[];
}

/** The API paths that the page can use. */
const USED = [
  '/v1/live',
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/conversations',
  '/v1/conversations/:id/turns',
  '/v1/agents/:name',
  '/v1/ephemeral_tokens',
  '/health',
];

type HeaderValue = HttpRequest['headers'][string];

interface PlaygroundDependencies {
  readonly config: PlaygroundConfig;
  readonly version: string;
  /** The server's HTTP paths. Called when the server is running. */
  readonly paths: () => readonly string[];
  readonly authProviders: Extensions<AuthProvider>;
}

/**
 * Serves the page and its files.
 *
 * 1. `start` reads all files into memory. A missing one fails the start.
 * 2. The routes answer from memory. If the browser has the current version, the answer is 304.
 */
export class Playground implements Lifecycle {
  readonly #dependencies: PlaygroundDependencies;
  #files: ReadonlyMap<string, PageFile> = new Map();

  constructor(dependencies: PlaygroundDependencies) {
    this.#dependencies = dependencies;
  }

  async start(): Promise<void> {
    this.#files = await readPageFiles();
  }

  get routes(): readonly HttpRoute[] {
    const route = { method: 'GET', access: 'page', body: 'none', startsWork: false } as const;
    const home: HttpRoute = { ...route, path: '/', handle: openHome };
    return [
      { ...route, path: PAGE, link: 'playground', handle: (request) => this.#file('index.html', request) },
      { ...route, path: `${PAGE}/settings.json`, handle: () => this.#settings() },
      { ...route, path: `${PAGE}/*file`, handle: (request) => this.#file(request.params.file ?? '', request) },
      ...(this.#dependencies.config.home ? [home] : []),
    ];
  }

  #file(name: string, { method, path, headers }: HttpRequest): HttpReply {
    const file = this.#files.get(name);
    if (!file) throw notFound(method, path);
    const { etag, type } = file;
    const caching = { ...SECURITY_HEADERS, etag, 'cache-control': 'no-cache', vary: 'accept-encoding' };
    if (hasCurrent(headers['if-none-match'], etag)) return { status: 304, headers: caching };
    const typed = { ...caching, 'content-type': type };
    if (!acceptsGzip(headers['accept-encoding'])) return { status: 200, headers: typed, body: file.bytes };
    return { status: 200, headers: { ...typed, 'content-encoding': 'gzip' }, body: file.gzipped };
  }

  #settings(): HttpReply {
    const { config, version, authProviders, paths } = this.#dependencies;
    const there = new Set(paths());
    const settings: PageSettings = {
      title: config.title,
      version,
      docs: config.docs ?? null,
      suggestions: config.suggestions,
      token: authProviders.all().length > 0,
      routes: USED.filter((path) => there.has(path)),
    };
    return { status: 200, headers: { ...SECURITY_HEADERS, 'cache-control': 'no-store' }, body: settings };
  }
}

/**
 * Redirects browsers, which accept HTML, to the page. Other clients get a 404, as without the
 * playground.
 */
function openHome({ headers, method, path }: HttpRequest): HttpReply {
  if (!String(headers.accept ?? '').includes('text/html')) throw notFound(method, path);
  return { status: 303, headers: { location: PAGE.slice(1), vary: 'accept' } };
}

function notFound(method: string, path: string): HttpError {
  return new HttpError(404, `Invalid URL (${method} ${path})`);
}

/** Accepts weak tags: a proxy that compresses a reply makes its tag weak. */
function hasCurrent(header: HeaderValue, etag: string): boolean {
  return String(header ?? '')
    .split(',')
    .some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

function acceptsGzip(header: HeaderValue): boolean {
  return /(?:^|,)\s*gzip\s*(?:$|,|;\s*q=(?!0(?:\.0*)?\s*(?:$|,)))/i.test(String(header ?? ''));
}
