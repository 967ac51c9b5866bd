import type { FileLayout } from './host/file-layout.js';
import type { DefinedPlugin } from './host/plugin.js';

/**
 * The sections of `plugboard.yaml`, and what an entry's short name means in each. The host itself knows none of them.
 * @param bundled plugins that need no entry; the properties of their schemas are keys of the file's top level.
 */
export function layoutOf(bundled: readonly DefinedPlugin[]): FileLayout {
  return {
    sections: {
      transports: { prefix: 'transport', shape: 'map', required: true },
      auth: { prefix: 'auth', shape: 'map', strict: true, literals: ['open'] },
      sessions: { prefix: 'store', shape: 'single', fallback: { use: 'memory' } },
      models: { prefix: 'model', shape: 'map' },
      tools: {
        prefix: 'tool',
        shape: 'map',
        shared: {
          timeout: { type: 'string', format: 'duration', default: '60s', description: 'How long one call may take.' },
          resultLimit: {
            type: 'string',
            format: 'size',
            default: '64kb',
            description: 'How much of a result the model is shown; what is longer is cut, with a note.',
          },
        },
      },
      plugins: { prefix: 'plugin', shape: 'map' },
    },
    bundled,
    plainOptions: ['host', 'port', 'system'],
  };
}
