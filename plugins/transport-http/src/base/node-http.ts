/**
 * Node's HTTP module, without what only its `import` loads. An `import` reads every export, and reading `WebSocket` loads Node's own copy
 * of undici: 25 ms and 13 MiB of a start. Use `import type` for the types.
 */
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
