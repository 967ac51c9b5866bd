import 'reflect-metadata';
import { type DependencyContainer, type InjectionToken, injectable } from 'tsyringe';
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

/**
 * Creates the object graph of a plugin with many classes in the container of its entry: one
 * instance of each class.
 *
 * @param ctx the argument of `register`. Constructors may contribute and read points.
 * @param root the class that the others serve.
 * @param classes every other class of the graph.
 * @returns the instance of `root`.
 * @throws Error of a constructor, or if a parameter names a class that is not listed.
 * @public
 */
export function createGraph<T>(
  { container }: { readonly container: DependencyContainer },
  root: InjectableClass<T>,
  classes: readonly InjectableClass[],
): T {
  for (const one of [root, ...classes] as (new () => unknown)[]) {
    // Not as a decorator: compilers rewrite the private members of a decorated class as weak maps,
    // which are slow.
    injectable()(one);
    container.registerSingleton(one);
  }
  return container.resolve(root as InjectionToken<T>);
}
