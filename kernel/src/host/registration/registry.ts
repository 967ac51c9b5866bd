import { hostError } from '../base/errors.js';
import type { Contribution, ExtensionPoint, Extensions } from '../plugin/extension-point.js';

type AnyPoint = ExtensionPoint<unknown>;
type AnyContribution = Contribution<unknown>;

/**
 * The contributions to all extension points under one configuration.
 *
 * 1. While plugins register, contributions are collected. A name that is taken, and a second
 *    contribution to a point that allows one, are refused.
 * 2. `seal` ends that. Views are empty before, and show all contributions after it.
 * 3. `disable` removes the contributions of an entry. Views show that at once; arrays that were
 *    taken from them do not change.
 */
export class Registry {
  readonly #points = new Map<symbol, { readonly point: AnyPoint; contributions: readonly AnyContribution[] }>();
  #sealed = false;

  /**
   * @throws HostError that names both owners if the point's discipline does not allow the
   * contribution.
   */
  contribute<T>(point: ExtensionPoint<T>, contribution: Contribution<T>): void {
    const known = this.#points.get(point.key) ?? { point: point as AnyPoint, contributions: [] };
    refuseDuplicate(known.point, known.contributions, contribution);
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

  /** The contributions to a point, sealed or not. */
  at<T>(point: ExtensionPoint<T>): readonly Contribution<T>[] {
    return (this.#points.get(point.key)?.contributions ?? NOTHING) as readonly Contribution<T>[];
  }

  /** Every point with contributions. */
  points(): readonly { readonly point: AnyPoint; readonly contributions: readonly AnyContribution[] }[] {
    return [...this.#points.values()];
  }

  /** The contributions to a point, or none until the registry is sealed. */
  visible<T>(point: ExtensionPoint<T>): readonly Contribution<T>[] {
    return this.#sealed ? this.at(point) : (NOTHING as readonly Contribution<T>[]);
  }

  /** The contributions of one entry. */
  of(entry: string): readonly { readonly point: AnyPoint; readonly contribution: AnyContribution }[] {
    return this.points().flatMap(({ point, contributions }) =>
      contributions.filter((contribution) => contribution.entry === entry).map((contribution) => ({ point, contribution })),
    );
  }

  view<T>(point: ExtensionPoint<T>): Extensions<T> {
    return viewOf(point, () => this);
  }
}

/**
 * A live view of a point.
 * @param registry the registry to read. A reload replaces it.
 * @param guard called before each access; throws while access is not allowed.
 */
export function viewOf<T>(
  point: ExtensionPoint<T>,
  registry: () => Registry,
  guard: () => void = () => undefined,
): Extensions<T> {
  const all = (): readonly Contribution<T>[] => {
    guard();
    return registry().visible(point);
  };
  return Object.freeze({
    all,
    get: (name: string) => all().find((contribution) => contribution.name === name)?.value,
    one: () => {
      const [only] = all();
      if (only === undefined) throw hostError('POINT_EMPTY', point.id);
      return only.value;
    },
    [Symbol.iterator]: () => all()[Symbol.iterator](),
  });
}

const NOTHING: readonly AnyContribution[] = Object.freeze([]);

function refuseDuplicate(point: AnyPoint, existing: readonly AnyContribution[], { name, entry }: AnyContribution): void {
  const [first] = existing;
  const namesake = existing.find((contribution) => contribution.name === name);
  if (point.discipline === 'one' && first) throw hostError('ONLY_ONE_ALLOWED', entry, first.entry, point.id);
  if (point.discipline === 'by-name' && namesake?.entry === entry)
    throw hostError('CONTRIBUTED_TWICE_BY_ONE', entry, name, point.id);
  if (point.discipline === 'by-name' && namesake) throw hostError('CONTRIBUTED_TWICE', entry, namesake.entry, name, point.id);
}
