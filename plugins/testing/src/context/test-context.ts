import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import {
  type CheckContext,
  type Clock,
  type DefinedPlugin,
  defineExtensionPoint,
  type ExtensionPoint,
  type HostView,
  type IdSource,
  type Infer,
  type JsonSchema,
  type Lifecycle,
  type PluginContext,
  type StateStore,
} from '@plugboard/kernel';
import { Budgets } from '@plugboard/kernel/contracts';
import { KERNEL, OptionSchema, Registry, registerEntry } from '@plugboard/kernel/internal';
import { MemoryState } from '@plugboard/store-memory';
import { CapturedLog, type LogLine } from '../base/captured-log.js';
import { ManualClock } from '../base/clock.js';
import { SequentialIds } from '../base/ids.js';
import { checkOptions } from './options.js';

/** What `testContext` registers a plugin with. Everything has a default. @experimental */
export interface TestContextOptions {
  /** The plugin's options as in the file. Defaults are added. */
  readonly config?: unknown;
  /** The entry's place in the file. By default `plugins.test`. */
  readonly entry?: string;
  /** By default a `ManualClock`. */
  readonly clock?: Clock;
  /** By default `SequentialIds`. */
  readonly ids?: IdSource;
  /** The folder that relative paths are relative to. By default the working folder. */
  readonly folder?: string;
  /** The state of the server. By default it runs and has no entries. */
  readonly host?: HostView;
  /** What keeps `ctx.state`: that of an earlier context, after a restart. By default a new one. */
  readonly state?: StateStore;
  /** What `check` and `ctx.entries` see of the file. By default it has no other entries. */
  readonly check?: Partial<CheckContext>;
}

/** The context of a plugin's `register`, with what the plugin did with it. @experimental */
export interface TestContext<C = unknown> extends PluginContext<C> {
  /** The value that `register` returned, or an empty object. */
  readonly lifecycle: Lifecycle;
  /** The value contributed to a point, under `name` if given. @throws Error if it is not one. */
  contributed<T>(point: ExtensionPoint<T>, name?: string): T;
  /** All contributions of the plugin. */
  contributions(): readonly { readonly point: string; readonly name: string }[];
  /** Contributes a value as another entry, for the plugin to read. */
  provide<T>(point: ExtensionPoint<T>, value: T, name?: string): void;
  /** What `ctx.state` is kept in, for `ScriptedRuntime` and for a look at it. */
  readonly stateStore: StateStore;
  /** The log so far. */
  readonly logs: readonly LogLine[];
}

/**
 * Registers a plugin for one entry as a server would, but without a server.
 *
 * ```ts
 * const ctx = testContext(plugin, { config: { timeZone: 'Europe/Paris' } });
 * const [tool] = await ctx.contributed(ToolSources).tools(signal);
 * ```
 *
 * @throws Error with all mistakes in the options, and what `register` throws.
 * @experimental
 */
export function testContext<S extends JsonSchema>(
  definition: DefinedPlugin<S>,
  options: TestContextOptions = {},
): TestContext<Infer<S>> {
  const {
    clock = new ManualClock(),
    ids = new SequentialIds(),
    entry: id = 'plugins.test',
    folder = '.',
    host = QUIET,
  } = options;
  const resolvePath = (path: string): string => resolve(folder, path);
  const { config, faults } = checkOptions(definition, options.config, { resolvePath, ...options.check });
  if (faults.length > 0) {
    const what = `${definition.name} does not take these options; pass others as \`config\` of the test's options:`;
    throw new Error(`${what}\n${faults.join('\n')}`);
  }

  let given: PluginContext<Infer<S>> | undefined;
  const watched: DefinedPlugin = {
    ...(definition as unknown as DefinedPlugin),
    register(ctx) {
      given = ctx as PluginContext<Infer<S>>;
      return definition.register(given);
    },
  };
  const registry = new Registry();
  const { state = new MemoryState(clock) } = options;
  registry.contribute(TestStates, { name: 'state', value: state, entry: 'test.state', shared: {} });
  const log = new CapturedLog();
  const { entries = () => [] } = options.check ?? {};
  const logger = log.logger(clock);
  const budgets = new Budgets(clock, logger);
  const { lifecycle } = registerEntry(
    { id, name: id.split('.').slice(1).join('.') || id, config: config as Readonly<Record<string, unknown>>, shared: {} },
    {
      definition: watched,
      options: new OptionSchema(definition.configSchema),
      name: definition.name,
      version: '0.0.0',
      path: folder,
    },
    {
      revision: { registry, entries, pin: () => () => undefined },
      host,
      log: logger,
      clock,
      ids,
      budgets,
      state: { point: TestStates as ExtensionPoint<unknown>, storeOf: () => state },
      resolvePath,
    },
  );
  registry.seal();
  assert.ok(given);

  const own = <T>(point: ExtensionPoint<T>) => registry.at(point).filter(({ entry }) => entry === id);
  const contributions = () => registry.points().flatMap(({ point }) => own(point).map(({ name }) => ({ point: point.id, name })));
  return {
    ...given,
    lifecycle,
    contributed: (point, name) => {
      const [first, ...more] = own(point).filter((contribution) => name === undefined || contribution.name === name);
      if (first && more.length === 0) return first.value;
      const all = contributions().map(({ point, name }) => `"${name}" at ${point}`);
      const wanted = `one value${name === undefined ? '' : ` "${name}"`} at ${point}`;
      throw new Error(
        `${definition.name} did not contribute ${wanted}, but ${all.length > 0 ? all.join(', ') : 'nothing at all'}`,
      );
    },
    contributions,
    provide: (point, value, name = 'other') => registry.contribute(point, { name, value, entry: `test.${name}`, shared: {} }),
    stateStore: state,
    logs: log.lines,
  };
}

/** What keeps `ctx.state` in a test. */
const TestStates = defineExtensionPoint<StateStore>('test.state', { discipline: 'one' });

const QUIET: HostView = {
  version: KERNEL.version,
  phase: 'running',
  stopRequested: new AbortController().signal,
  entries: () => [],
  literal: () => undefined,
};
