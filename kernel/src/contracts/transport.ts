import { defineExtensionPoint } from '../host/plugin/extension-point.js';

/** Something that callers connect to. Its work is its plugin's; here it says where it can be reached. */
export interface Transport {
  /** What a person needs to reach it, once it runs: `http://127.0.0.1:8080`. Undefined before. */
  address(): string | undefined;
}

export const Transports = defineExtensionPoint<Transport>('agent.transport', { discipline: 'in-order' });
