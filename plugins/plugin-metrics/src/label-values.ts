/** The most values that a label has. */
const MAX_VALUES = 500;

/** Stands for every value beyond them, and for a name that the configuration does not have. */
export const OTHER = '_other';

/** The labels of a measurement. An undefined one is left out. */
export type Labels = Readonly<Record<string, string | undefined>>;

/**
 * Bounds the values of each label (OB-6). Names come from the configuration, but those of tools
 * come from their servers, and a server that is reloaded often has had many names.
 */
export class LabelValues {
  readonly #values = new Map<string, Set<string>>();

  /** Returns the labels with `_other` for each value beyond the first 500 of its label. */
  bound(labels: Labels): Record<string, string> {
    const bounded: Record<string, string> = {};
    for (const label in labels) {
      const value = labels[label];
      if (value !== undefined) bounded[label] = this.#isKnown(label, value) ? value : OTHER;
    }
    return bounded;
  }

  #isKnown(label: string, value: string): boolean {
    let values = this.#values.get(label);
    if (!values) {
      values = new Set();
      this.#values.set(label, values);
    }
    if (values.has(value)) return true;
    if (values.size >= MAX_VALUES) return false;
    values.add(value);
    return true;
  }
}
