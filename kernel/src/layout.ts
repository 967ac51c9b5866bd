import type { FileLayout } from './host/configuration/file-layout.js';

/** The sections of `plugboard.yaml`, and the package that a short name means in each. */
export const layout: FileLayout = {
  sections: {
    transports: { prefix: 'transport', shape: 'map', required: true },
    auth: { prefix: 'auth', shape: 'map', strict: true, literals: ['open'] },
    // Two stores at once would split the sessions.
    sessions: { prefix: 'store', shape: 'single', fallback: { use: 'memory' }, fixed: 'entry' },
    models: { prefix: 'model', shape: 'map' },
    tools: {
      prefix: 'tool',
      shape: 'map',
      shared: {
        timeout: { type: 'string', format: 'duration', default: '60s', description: 'Time limit of one call.' },
        resultLimit: {
          type: 'string',
          format: 'size',
          default: '64kb',
          description: 'Maximum size of a result sent to the model; longer results are truncated, with a note.',
        },
      },
    },
    plugins: { prefix: 'plugin', shape: 'map' },
    // Its options are the top-level keys `agents`, `projects`, `defaultAgent` and `limits`.
    // Two runtimes at once would run turns of one session side by side.
    runtime: { prefix: '', shape: 'single', fallback: { use: 'agent-runtime' }, topLevelOptions: true, fixed: 'plugin' },
  },
  plainOptions: ['host', 'port', 'system'],
  secretFields: ['apiKey', 'api_key', 'password', 'token'],
};
