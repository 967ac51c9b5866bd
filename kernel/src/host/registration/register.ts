import 'reflect-metadata';
import { container } from 'tsyringe';
import type { Clock, IdSource } from '../base/ambient.js';
import { HostError, hostError, reasonWithPlace } from '../base/errors.js';
import { beginMethod } from '../base/plugin-calls.js';
import type { HostView } from '../base/status.js';
import type { ConfiguredEntry } from '../configuration/entry.js';
import type { Logger } from '../log/log.js';
import type { Budgets } from '../plugin/budgets.js';
import type { ExtensionPoint, Extensions } from '../plugin/extension-point.js';
import { LocalHolds } from '../plugin/holds.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import type { Lifecycle, PluginContext } from '../plugin/plugin.js';
import { shapeMistake, typeName } from '../plugin/shape.js';
import { EntryState, type StateSource } from '../plugin/state.js';
import { CONTEXT } from './class-graph.js';
import { type Registry, viewOf } from './registry.js';

/** What an entry sees of the configuration. */
export interface RevisionView {
  readonly registry: Registry;
  /** The keys of a section of the file, or of another map of its top level. */
  entries(section: string, where?: Readonly<Record<string, unknown>>): readonly string[];
  /** Keeps the entries of this revision running until the returned function is called. */
  pin(): () => void;
}

/** The revision that an entry sees. A reload replaces it for the entries that stay. */
export interface EntryScope {
  revision: RevisionView;
}

/** What the registrations of all entries share. */
export interface RegistrationDependencies {
  readonly revision: RevisionView;
  readonly host: HostView;
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly budgets: Budgets;
  /** Absent if nothing keeps the state of plugins. */
  readonly state?: StateSource | undefined;
  resolvePath(path: string): string;
}

/** What the plugin of an entry contributed, and what it reads. */
export interface Registration {
  readonly lifecycle: Lifecycle;
  /** The keys of the points. */
  readonly contributes: ReadonlySet<symbol>;
  readonly reads: ReadonlySet<symbol>;
  /** Every point that it reads, including late reads. */
  readonly allReads: ReadonlySet<ExtensionPoint<unknown>>;
  /** The sections whose keys it read, with the keys. */
  readonly keysRead: ReadonlyMap<string, readonly string[]>;
  readonly scope: EntryScope;
}

/** An entry whose plugin was registered. */
export interface Registered extends Registration {
  readonly entry: ConfiguredEntry;
  readonly id: string;
  readonly optional: boolean;
  readonly plugin: LoadedPlugin;
}

/** Calls `register` for an entry and records what it reads and contributes. @throws what it does */
export function registerEntry(
  { id, name, config = {}, shared }: Pick<ConfiguredEntry, 'id' | 'name' | 'config' | 'shared'>,
  plugin: LoadedPlugin,
  dependencies: RegistrationDependencies,
): Registration {
  const { host, clock, ids, budgets } = dependencies;
  const scope: EntryScope = { revision: dependencies.revision };
  const { registry } = scope.revision;
  const current = () => scope.revision.registry;
  const log = dependencies.log.child({ plugin: plugin.name, entry: id }) as Logger;
  const contributes = new Set<symbol>();
  const reads = new Set<symbol>();
  const allReads = new Set<ExtensionPoint<unknown>>();
  const keysRead = new Map<string, readonly string[]>();
  let open = true;
  const assertOpen = (action: string) => {
    if (!open) throw hostError('REGISTER_OVER', id, action);
  };
  const assertPoint = (method: string, point: unknown) => {
    if (!isPoint(point)) throw hostError('POINT_INVALID', method, typeName(point));
  };
  const assertRunning = () => {
    if (host.phase === 'starting') throw hostError('LATE_TOO_EARLY', id);
  };

  /** What keeps the state. @throws HostError while it cannot be used */
  const keeper = (): { readonly source: StateSource; readonly value: unknown } => {
    const source = dependencies.state;
    if (source === undefined) throw hostError('STATE_UNAVAILABLE', id);
    const [only] = current().visible(source.point);
    // An entry that did not take it in `register` may start before what keeps it.
    const isRunning = () => host.entries().some(({ entry, status }) => entry === only?.entry && status === 'running');
    if (!reads.has(source.point.key) && !isRunning()) throw hostError('STATE_UNREAD', id);
    if (only === undefined) throw open ? hostError('STATE_TOO_EARLY', id) : hostError('POINT_EMPTY', source.point.id);
    return { source, value: only.value };
  };
  const storeOf = ({ source, value }: ReturnType<typeof keeper>) => source.storeOf(value);
  const state = new EntryState(
    id,
    () => storeOf(keeper()),
    () => {
      const found = keeper();
      return found.source.holdsOf?.(found.value) ?? LocalHolds.of(storeOf(found));
    },
  );

  const ctx: PluginContext<Readonly<Record<string, unknown>>> = Object.freeze({
    entry: id,
    name,
    config,
    log,
    clock,
    ids,
    host,
    budgets,
    container: container.createChildContainer(),
    get state() {
      if (open && dependencies.state) {
        reads.add(dependencies.state.point.key);
        allReads.add(dependencies.state.point);
      }
      return state;
    },
    contribute<T>(point: ExtensionPoint<T>, value: T, as: string = name): void {
      assertPoint('contribute', point);
      assertOpen(`contribute to ${point}`);
      const mistake = shapeMistake(value, point as ExtensionPoint<unknown>);
      if (mistake !== undefined) throw hostError('CONTRIBUTION_INVALID', id, as, point.id, mistake);
      registry.contribute(point, { name: as, value, entry: id, shared });
      contributes.add(point.key);
    },
    extensions<T>(point: ExtensionPoint<T>): Extensions<T> {
      assertPoint('extensions', point);
      assertOpen(`read ${point}`);
      reads.add(point.key);
      allReads.add(point as ExtensionPoint<unknown>);
      return viewOf(point, current);
    },
    late<T>(point: ExtensionPoint<T>): Extensions<T> {
      assertPoint('late', point);
      assertOpen(`read ${point}`);
      allReads.add(point as ExtensionPoint<unknown>);
      return viewOf(point, current, assertRunning);
    },
    entries(section: string, where?: Readonly<Record<string, unknown>>): readonly string[] {
      keysRead.set(section, scope.revision.entries(section));
      return scope.revision.entries(section, where);
    },
    resolvePath: dependencies.resolvePath,
    pin: () => scope.revision.pin(),
  });
  ctx.container.register(CONTEXT, { useValue: ctx });

  const returned = callRegister(id, plugin, ctx);
  open = false;
  const lifecycle = asLifecycle(returned);
  if (contributes.size === 0 && !Object.values(lifecycle).some((member) => typeof member === 'function')) {
    throw hostError('CONTRIBUTES_NOTHING', id);
  }
  return { lifecycle, contributes, reads, allReads, keysRead, scope };
}

/** @throws what `register` throws, with the file and line that it comes from. */
function callRegister(id: string, plugin: LoadedPlugin, ctx: PluginContext<Readonly<Record<string, unknown>>>): unknown {
  const ended = beginMethod('register', id, plugin);
  try {
    return plugin.definition.register(ctx);
  } catch (error) {
    throw new HostError('REGISTER_FAILED', reasonWithPlace(error), { cause: error });
  } finally {
    ended();
  }
}

function isPoint(value: unknown): value is ExtensionPoint<unknown> {
  return typeof value === 'object' && value !== null && 'key' in value && typeof value.key === 'symbol' && 'discipline' in value;
}

function asLifecycle(returned: unknown): Lifecycle {
  if (returned === undefined) return {};
  if (typeof returned !== 'object' || returned === null || 'then' in returned) {
    throw hostError('REGISTER_ASYNC');
  }
  return returned;
}
