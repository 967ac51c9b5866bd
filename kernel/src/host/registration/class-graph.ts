import type { DependencyContainer, InjectionToken } from 'tsyringe';
import type { PluginContext } from '../plugin/plugin.js';

/**
 * The entry's `PluginContext`, in its container. A class takes what it needs from it:
 * `constructor(@inject(CONTEXT) { config, log, clock }: PluginContext<MyConfig>)`.
 *
 * @public
 */
export const CONTEXT: InjectionToken<PluginContext> = Symbol.for('plugboard.context');

/**
 * A class whose constructor parameters are all marked with `@inject`, itself marked with
 * `@injectable()`.
 *
 * @public
 */
export type InjectableClass<T = unknown> = new (...args: never[]) => T;

/**
 * Creates the object graph of a plugin with many classes in the container of its entry: one
 * instance of each class.
 *
 * @param ctx the argument of `register`. Constructors may contribute and read points.
 * @param root the class that the others serve.
 * @param classes every other class of the graph. A class that is not listed gets an instance per
 *   use.
 * @returns the instance of `root`.
 * @throws Error of a constructor, or if a parameter cannot be resolved.
 * @public
 */
export function createGraph<T>(
  { container }: { readonly container: DependencyContainer },
  root: InjectableClass<T>,
  classes: readonly InjectableClass[],
): T {
  for (const one of [root, ...classes] as InjectionToken<unknown>[]) container.registerSingleton(one, one);
  return container.resolve(root as InjectionToken<T>);
}
