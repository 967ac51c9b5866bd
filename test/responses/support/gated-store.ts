const COMMIT = Symbol.for('gated-store.commit');

/**
 * The module of a session store in memory whose commits wait for the test. Server and test run in
 * one process.
 */
export const GATED_STORE = {
  'store.mjs': `
    import { definePlugin, SessionStores } from '@plugboard/kernel';
    import memory from '@plugboard/store-memory';
    export default definePlugin({
      ...memory,
      name: 'gated-store',
      register: (ctx) => memory.register({ ...ctx, contribute: (point, store) => ctx.contribute(SessionStores, new Proxy(store, {
        get: (target, key) => {
          const member = Reflect.get(target, key, target);
          if (typeof member !== 'function') return member;
          if (key !== 'commit') return member.bind(target);
          return async (...args) => {
            await globalThis[Symbol.for('gated-store.commit')]?.();
            return target.commit(...args);
          };
        },
      })) }),
    });
  `,
};

/** The section of the configuration that uses it. */
export const GATED_SESSIONS = 'sessions: { use: ./store.mjs }\n';

/** Makes the next commit wait. */
export function holdCommit(): { readonly began: Promise<void>; release(): void } {
  const [began, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  Object.assign(globalThis, {
    [COMMIT]: () => {
      Object.assign(globalThis, { [COMMIT]: undefined });
      began.resolve();
      return gate.promise;
    },
  });
  return { began: began.promise, release: gate.resolve };
}
