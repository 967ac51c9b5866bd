import 'reflect-metadata';
import { type DependencyContainer, type InjectionToken, injectable, inject as tsyringeInject } from 'tsyringe';
import type { PluginContext } from '../plugin/plugin.js';

/**
 * The entry's `PluginContext`, in its container. A class takes what it needs from it:
 * `constructor(@inject(CONTEXT) { config, log, clock }: PluginContext<MyConfig>)`.
 *
 * @public
 */
export const CONTEXT: InjectionToken<PluginContext> = Symbol.for('plugboard.context');

/** A class whose constructor parameters are all marked with `@inject`. @public */
export type InjectableClass<T = unknown> = new (...args: never[]) => T;

/** The classes that the constructor of each class takes. */
const DEPENDENCIES = new WeakMap<object, InjectableClass[]>();

/** Marks a parameter of a constructor: a class of the same graph, or `CONTEXT`. @public */
export function inject<T>(taken: InjectionToken<T>): ParameterDecorator {
  const mark = tsyringeInject(taken) as ParameterDecorator;
  return (target, key, index) => {
    if (typeof taken === 'function') DEPENDENCIES.set(target, [...(DEPENDENCIES.get(target) ?? []), taken]);
    mark(target, key, index);
  };
}

/**
 * Creates the object graph of a plugin with many classes in the container of its entry: one
 * instance of each class that a constructor of the graph takes.
 *
 * @param ctx the argument of `register`. Constructors may contribute and read points.
 * @param root the class that the others serve.
 * @returns the instance of `root`.
 * @throws Error of a constructor, or if classes take each other.
 * @public
 */
export function createGraph<T>({ container }: { readonly container: DependencyContainer }, root: InjectableClass<T>): T {
  const register = (one: InjectableClass) => {
    const type = one as new () => unknown;
    if (container.isRegistered(type)) return;
    // Not as a decorator: compilers rewrite the private members of a decorated class as weak maps,
    // which are slow.
    injectable()(type);
    container.registerSingleton(type);
    DEPENDENCIES.get(one)?.forEach(register);
  };
  register(root);
  return container.resolve(root as InjectionToken<T>);
}
