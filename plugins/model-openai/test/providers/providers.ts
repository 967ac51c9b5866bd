import { HOSTS } from './hosts.js';
import { MODEL_MAKERS } from './model-makers.js';
import type { Provider } from './provider-server.js';
import { SELF_HOSTED } from './self-hosted.js';

/** The servers of the matrix, by the name of their preset: how each differs from the protocol. */
export const PROVIDERS: Readonly<Record<string, Provider>> = { ...MODEL_MAKERS, ...HOSTS, ...SELF_HOSTED };
