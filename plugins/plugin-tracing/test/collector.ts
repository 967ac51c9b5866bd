import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import protobuf from 'protobufjs';
import type { Test } from 'tap';

const { root } = protobuf.parse(readFileSync(join(import.meta.dirname, 'fixtures/otlp.proto'), 'utf8'));
const RequestType = root.lookupType('ExportTraceServiceRequest');
const ResponseType = root.lookupType('ExportTraceServiceResponse');

type Value = string | number | boolean | readonly Value[];
type Attributes = Readonly<Record<string, Value>>;

/** A span as it arrived. Ids are hexadecimal. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined for the root of a trace. */
  readonly parent: string | undefined;
  readonly traceState: string;
  readonly attributes: Attributes;
  /** Ids of the linked spans. */
  readonly links: readonly string[];
  readonly isError: boolean;
  readonly resource: Attributes;
  readonly scope: string;
  /** Nanoseconds. */
  readonly start: bigint;
  readonly end: bigint;
}

/** How the receiver answers a batch: a status, or a promise of one. */
type Answer = () => number | Promise<number>;

/**
 * An OTLP receiver: real HTTP. It decodes batches by the definitions of OpenTelemetry, and not with
 * the code that wrote them.
 */
export class Collector {
  readonly endpoint: string;
  readonly spans: ReceivedSpan[] = [];
  /** The headers of the requests, and their bodies. */
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = [];
  answer: Answer = () => 200;
  contentType = 'application/x-protobuf';
  /** Spans of a batch that it takes and rejects. */
  rejected = 0;
  readonly #server: Server;
  #arrived = Promise.withResolvers<void>();

  private constructor(server: Server) {
    this.#server = server;
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', async (request, response) => {
      const body = await buffer(request).catch(() => undefined);
      if (!body) return; // the sender has given up
      this.requests.push({ path: request.url ?? '', headers: request.headers, body });
      this.#wake();
      const status = await this.answer();
      if (status === 200) this.spans.push(...spansIn(body));
      this.#wake();
      const partialSuccess = this.rejected > 0 ? { rejectedSpans: this.rejected } : undefined;
      const answer = ResponseType.encode(ResponseType.fromObject({ ...(partialSuccess && { partialSuccess }) })).finish();
      response.writeHead(status, { 'content-type': this.contentType }).end(status === 200 ? answer : 'no');
    });
  }

  static async start(t: Pick<Test, 'teardown'>, port = 0): Promise<Collector> {
    const server = createServer();
    await once(server.listen(port, '127.0.0.1'), 'listening');
    const collector = new Collector(server);
    t.teardown(() => collector.close());
    return collector;
  }

  /** An endpoint that refuses connections. */
  static async refused(t: Test): Promise<string> {
    const collector = await Collector.start(t);
    await collector.close();
    return collector.endpoint;
  }

  /** Waits until the condition holds, which is tried whenever a batch arrives. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#arrived.promise;
  }

  /** The spans with that name. */
  named(name: string): readonly ReceivedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** The only span with that name. @throws Error if there are none, or several. */
  one(name: string): ReceivedSpan {
    const [span, ...more] = this.named(name);
    if (!span || more.length > 0) throw new Error(`${more.length + (span ? 1 : 0)} spans are named ${name}:\n${this.tree()}`);
    return span;
  }

  /** The spans as an indented text, children below their parents in the order of their starts. */
  tree(describe: (span: ReceivedSpan) => string = ({ name }) => name): string {
    const ids = new Set(this.spans.map(({ spanId }) => spanId));
    const ordered = this.spans.toSorted((a, b) => Number(a.start - b.start));
    const lines = (parent: string | undefined, depth: number): string[] =>
      ordered
        .filter((span) => (span.parent !== undefined && ids.has(span.parent) ? span.parent : undefined) === parent)
        .flatMap((span) => ['  '.repeat(depth) + describe(span), ...lines(span.spanId, depth + 1)]);
    return lines(undefined, 0).join('\n');
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server.close(), 'close');
  }

  #wake(): void {
    this.#arrived.resolve();
    this.#arrived = Promise.withResolvers();
  }
}

/** What `toObject` makes of a batch. */
interface Decoded {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Pair[] };
    readonly scopeSpans: readonly { readonly scope: { readonly name: string }; readonly spans: readonly DecodedSpan[] }[];
  }[];
}

interface DecodedSpan {
  readonly traceId: Buffer;
  readonly spanId: Buffer;
  readonly parentSpanId?: Buffer;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly Pair[];
  readonly links?: readonly { readonly spanId: Buffer }[];
  readonly status?: { readonly code?: string };
}

interface Pair {
  readonly key: string;
  readonly value: Decodable;
}

interface Decodable {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly Decodable[] };
}

function spansIn(body: Buffer): ReceivedSpan[] {
  const { resourceSpans } = RequestType.toObject(RequestType.decode(body), { longs: String, enums: String }) as Decoded;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        name: span.name,
        kind: span.kind.replace('SPAN_KIND_', ''),
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        parent: span.parentSpanId && span.parentSpanId.length > 0 ? hex(span.parentSpanId) : undefined,
        traceState: span.traceState ?? '',
        attributes: attributesOf(span.attributes),
        links: (span.links ?? []).map(({ spanId }) => hex(spanId)),
        isError: span.status?.code === 'STATUS_CODE_ERROR',
        resource: attributesOf(resource.attributes),
        scope: scope.name,
        start: BigInt(span.startTimeUnixNano),
        end: BigInt(span.endTimeUnixNano),
      })),
    ),
  );
}

function attributesOf(pairs: readonly Pair[] = []): Attributes {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, decoded(value)]));
}

function decoded({ stringValue, boolValue, intValue, doubleValue, arrayValue }: Decodable): Value {
  if (arrayValue) return (arrayValue.values ?? []).map(decoded);
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
