import { createRequire } from 'node:module';

type Module = typeof import('@koa/router');

/** The router's CommonJS build: its ES module imports `node:http`, with the cost that node-http.ts describes. */
export const Router: Module['Router'] = (createRequire(import.meta.url)('@koa/router') as Module).Router;
