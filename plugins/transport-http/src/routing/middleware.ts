import { defineExtensionPoint } from '@plugboard/kernel';
import type { Middleware } from 'koa';

/**
 * Ordinary Koa middleware, `(ctx, next)`, around every route.
 *
 * 1. It runs in file order, after the checks of Host and Origin and before authentication. The
 *    reply to a CORS preflight is not passed through it.
 * 2. `next()` resolves when the route has replied. Status, headers and body are on `ctx`, and may
 *    be changed. A streamed reply has no `ctx.body`: it begins when all middleware has returned.
 * 3. Errors of the route pass through it. What it throws is answered like an error of a route;
 *    `ctx.throw(status, message)` keeps its status and message.
 * 4. It may reply itself, without `next()`. Without a reply the caller gets 404.
 *
 * `ctx.state.requestId` is the id of the request.
 */
export const HttpMiddleware = defineExtensionPoint<Middleware>('transport-http.middleware', {
  discipline: 'in-order',
  shape: 'function',
  unread: 'add http: {} under transports, which runs the middleware',
});
