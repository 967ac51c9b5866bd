import type { Lifecycle } from '@plugboard/kernel';

/** What the lifecycle of a plugin needs of its store. */
interface Startable {
  start(): Promise<void> | void;
  stop(): Promise<void> | void;
  /** Why the store does not work, if it does not. */
  failure(): Error | undefined;
}

/** The lifecycle of the plugin of a store. */
export function storeLifecycle(store: Startable) {
  return {
    start: () => store.start(),
    stop: () => store.stop(),
    health: () => {
      const failure = store.failure();
      return failure ? { state: 'failed', reason: failure.message } : { state: 'ok' };
    },
  } satisfies Lifecycle;
}
