import { CapturedLog } from '@plugboard/testing';
import type { Test } from 'tap';
import { ConfigError } from '../../src/host/base/errors.js';
import { type ComposeOptions, compose } from '../../src/host/compose.js';
import type { FileLayout } from '../../src/host/configuration/file-layout.js';
import type { HostServer } from '../../src/host/host-server.js';
import { layout } from '../../src/layout.js';

/** The sections of the real file, for plugins that contribute anything. */
const { runtime, ...otherSections } = Object.fromEntries(
  Object.entries(layout.sections).map(([name, { provides, ...section }]) => [name, section]),
);

/** The sections of the real file without an agent runtime, and without a default store. */
export const bare: FileLayout = {
  ...layout,
  sections: { ...otherSections, sessions: { prefix: 'store', shape: 'single', fixed: 'entry' } },
};

/** The same with the default agent runtime. */
export const withRuntime: FileLayout = { ...bare, sections: { ...bare.sections, ...(runtime && { runtime }) } };

/** Texts by their names, and folders. */
interface Files {
  readonly [name: string]: string | Files;
}
type Options = Partial<ComposeOptions>;

/**
 * A folder with these files, and the server of its `plugboard.yaml`. It is stopped when the test
 * ends.
 */
export async function composed(t: Test, files: Files, options: Options = {}): Promise<{ server: HostServer; log: CapturedLog }> {
  const log = new CapturedLog();
  const dir = t.testdir({ ...files });
  const server = await compose({ file: 'plugboard.yaml', layout: bare, env: {}, cwd: dir, logTo: log, ...options });
  t.teardown(() => server.stop());
  return { server, log };
}

/** What is wrong with a folder's `plugboard.yaml`, line by line. Fails where nothing is. */
export async function problemsOf(t: Test, files: Files, options: Options = {}): Promise<string[]> {
  try {
    await composed(t, files, options);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  return t.fail('the configuration has no problems') ? [] : [];
}

/**
 * The module of a plugin.
 * @param parts what differs from a plugin without options that does nothing, as JavaScript. `point`
 *   and `list` are extension points, by name and in order; `only` is one for a single contribution.
 */
export function plugin(
  parts: { name?: string; properties?: string; schema?: string; more?: string; register?: string } = {},
): string {
  const {
    name = 'test-plugin',
    properties = '{}',
    schema = `{ type: 'object', properties: ${properties} }`,
    more = '',
    register = '',
  } = parts;
  return `
    import { ConfigFault, defineExtensionPoint, definePlugin } from '@plugboard/kernel';
    import { CONTEXT } from '@plugboard/kernel/injection';
    const point = defineExtensionPoint('test.point', { discipline: 'by-name' });
    const list = defineExtensionPoint('test.list', { discipline: 'in-order', describe: (value) => value.facts ?? [] });
    const only = defineExtensionPoint('test.only', { discipline: 'one' });
    export default definePlugin({
      name: '${name}',
      apiVersion: 1,
      summary: 'A plugin of a test',
      configSchema: ${schema},
      ${more}
      register(ctx) { ${register} ${/\b(contribute|return)\b/.test(register) ? '' : '; return { stop() {} };'} },
    });
  `;
}

/** An installed package that is a plugin. */
export function installed(name: string, version: string, module: string, exports: unknown = './index.js') {
  return { 'package.json': JSON.stringify({ name, version, type: 'module', exports }), 'index.js': module };
}
