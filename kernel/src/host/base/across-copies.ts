/**
 * Makes `instanceof` recognise errors of a class that another copy of this package made: a plugin
 * may bring its own copy.
 *
 * ```ts
 * class GreetingError extends Error {
 *   static {
 *     recognizeAcrossCopies(this, 'GreetingError');
 *   }
 * }
 * ```
 *
 * @param type the class. @param name its name, the same in every copy.
 * @experimental
 */
export function recognizeAcrossCopies(type: abstract new (...args: never[]) => Error, name: string): void {
  // The build may rename classes. Log lines and the messages of assertions show this name.
  Object.defineProperty(type, 'name', { value: name, configurable: true });
  const brand = Symbol.for(`plugboard.error.${name}`);
  Object.defineProperty(type.prototype, brand, { value: true });
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      // Subclasses inherit this method, but have no brand of their own.
      if (this !== type) return Function.prototype[Symbol.hasInstance].call(this, value);
      return typeof value === 'object' && value !== null && brand in value;
    },
  });
}
