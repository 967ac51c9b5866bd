import { defineExtensionPoint } from '../../host/plugin/extension-point.js';

/**
 * An endpoint that callers connect to. The plugin serves it; this contract only says where.
 * Discipline: all.
 *
 * @public
 */
export interface Transport {
  /** The address for people, once it runs: `http://127.0.0.1:8080`. Undefined before. */
  address(): string | undefined;
}

/** The extension point of addresses that callers connect to, in file order. @public */
export const Transports = defineExtensionPoint<Transport>('agent.transport', {
  discipline: 'in-order',
  shape: { address: 'function' },
});
