import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';

type Methods<T> = { readonly [K in keyof T]: true };

/** Every method of the six interfaces. The compiler keeps the lists complete. */
const STORE: Methods<Omit<SessionStore, 'pendingToolCalls' | 'documents' | 'approvals' | 'idempotency' | 'state' | 'shared'>> = {
  load: true,
  version: true,
  begin: true,
  commit: true,
  abandon: true,
  recover: true,
  create: true,
  info: true,
  find: true,
  list: true,
  setMetadata: true,
  turns: true,
  putSummary: true,
  fork: true,
  delete: true,
  health: true,
};
const PENDING_TOOL_CALLS: Methods<SessionStore['pendingToolCalls']> = { save: true, find: true, load: true };
const DOCUMENTS: Methods<SessionStore['documents']> = { put: true, get: true, delete: true };
const APPROVALS: Methods<SessionStore['approvals']> = { get: true, find: true, waiting: true, replace: true };
const IDEMPOTENCY: Methods<SessionStore['idempotency']> = { claim: true, put: true, release: true };
const STATE: Methods<SessionStore['state']> = { get: true, change: true, list: true };

/** Fails with all missing methods, so that a store author sees them at once. */
export function assertMembers(store: SessionStore): void {
  const missing = [
    ...missingFrom('', store, STORE),
    ...missingFrom('pendingToolCalls.', store.pendingToolCalls, PENDING_TOOL_CALLS),
    ...missingFrom('documents.', store.documents, DOCUMENTS),
    ...missingFrom('approvals.', store.approvals, APPROVALS),
    ...missingFrom('idempotency.', store.idempotency, IDEMPOTENCY),
    ...missingFrom('state.', store.state, STATE),
  ];
  assert.ok(missing.length === 0, `the session store lacks these methods: ${missing.join(', ')}`);
}

function missingFrom(prefix: string, value: unknown, methods: object): readonly string[] {
  const isMethod = (name: string) =>
    typeof value === 'object' && value !== null && typeof Reflect.get(value, name) === 'function';
  return Object.keys(methods)
    .filter((name) => !isMethod(name))
    .map((name) => `${prefix}${name}`);
}
