import { defaultTextMapGetter, defaultTextMapSetter, ROOT_CONTEXT, type SpanContext, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';

/** Reads and writes `traceparent` and `tracestate`, as W3C Trace Context says. */
const propagator = new W3CTraceContextPropagator();

/** The caller's span. Undefined if the headers name none, or are invalid: a new trace begins. */
export function callerOf(headers: Readonly<Record<string, unknown>>): SpanContext | undefined {
  return trace.getSpanContext(propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter));
}

/** The headers that make a span the parent of what the receiver does. */
export function traceHeaders(span: SpanContext): Record<string, string> {
  const headers: Record<string, string> = {};
  propagator.inject(trace.setSpanContext(ROOT_CONTEXT, span), headers, defaultTextMapSetter);
  return headers;
}
