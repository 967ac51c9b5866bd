import type { Contribution, ExtensionPoint, Extensions } from '../plugin/extension-point.js';

type AnyPoint = ExtensionPoint<unknown>;
type AnyContribution = Contribution<unknown>;

/**
 * Who put what at which extension point.
 *
 * 1. While plugins register, contributions are collected; a name that is taken, or a second contribution to a point for one, is refused.
 * 2. `seal` ends that. Only now do views show anything.
 * 3. An entry that is disabled takes its contributions with it; whoever holds a view sees it at once, whoever holds an array does not.
 */
export class Registry {
  readonly #points = new Map<symbol, { readonly point: AnyPoint; contributions: readonly AnyContribution[] }>();
  #sealed = false;

  /** @throws Error naming both owners where the point's discipline leaves no room. */
  contribute<T>(point: ExtensionPoint<T>, contribution: Contribution<T>): void {
    const known = this.#points.get(point.key) ?? { point: point as AnyPoint, contributions: [] };
    const owner = rival(known.point, known.contributions, contribution);
    if (owner !== undefined) throw new Error(owner);
    known.contributions = Object.freeze([...known.contributions, Object.freeze(contribution)]);
    this.#points.set(point.key, known);
  }

  seal(): void {
    this.#sealed = true;
  }

  disable(entry: string): void {
    for (const known of this.#points.values()) {
      if (known.contributions.some((contribution) => contribution.entry === entry)) {
        known.contributions = Object.freeze(known.contributions.filter((contribution) => contribution.entry !== entry));
      }
    }
  }

  /** What is at a point, sealed or not. */
  at<T>(point: ExtensionPoint<T>): readonly Contribution<T>[] {
    return (this.#points.get(point.key)?.contributions ?? NOTHING) as readonly Contribution<T>[];
  }

  /** Every point that something was put at, with what is there. */
  points(): readonly { readonly point: AnyPoint; readonly contributions: readonly AnyContribution[] }[] {
    return [...this.#points.values()];
  }

  /** @param guard called before each look; throws where looking is not allowed yet. */
  view<T>(point: ExtensionPoint<T>, guard: () => void = () => undefined): Extensions<T> {
    const all = (): readonly Contribution<T>[] => {
      guard();
      return this.#sealed ? this.at(point) : (NOTHING as readonly Contribution<T>[]);
    };
    return Object.freeze({
      all,
      get: (name: string) => all().find((contribution) => contribution.name === name)?.value,
      one: () => {
        const [only] = all();
        if (only === undefined) throw new Error(`nothing is at ${point}; is a plugin missing from the configuration?`);
        return only.value;
      },
      [Symbol.iterator]: () => all()[Symbol.iterator](),
    });
  }
}

const NOTHING: readonly AnyContribution[] = Object.freeze([]);

function rival(point: AnyPoint, there: readonly AnyContribution[], { name, entry }: AnyContribution): string | undefined {
  if (point.discipline === 'one') {
    const [first] = there;
    return first && `${entry} and ${first.entry} both provide ${point}, of which there can be only one; remove one of them`;
  }
  if (point.discipline === 'in-order') return undefined;
  const first = there.find((contribution) => contribution.name === name);
  return first && `${entry} and ${first.entry} both provide "${name}" at ${point}; rename one of them`;
}
