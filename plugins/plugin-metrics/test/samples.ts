const SAMPLE = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/gm;
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The samples of a page in Prometheus' text format. */
export class Samples {
  readonly all: readonly Sample[];

  constructor(readonly text: string) {
    this.all = Array.from(text.matchAll(SAMPLE), ([, name = '', labels = '', value]) => ({
      name,
      labels: Object.fromEntries(Array.from(labels.matchAll(LABEL), ([, label = '', content = '']) => [label, content])),
      value: Number(value),
    }));
  }

  /** The samples of a name with these labels, perhaps among others. */
  find(name: string, labels: Readonly<Record<string, string>> = {}): readonly Sample[] {
    const fits = (sample: Sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value);
    return this.all.filter((sample) => sample.name === name && fits(sample));
  }

  /** The sum of them; 0 if there are none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number {
    return this.find(name, labels).reduce((sum, { value }) => sum + value, 0);
  }

  /** The values that a label of a name has. */
  valuesOf(name: string, label: string): readonly string[] {
    return [...new Set(this.find(name).map(({ labels }) => labels[label] ?? ''))].sort();
  }

  /** What identifies each series that the server has. Node.js' own depend on what it did. */
  get series(): readonly string[] {
    const own = this.all.filter(({ name }) => !/^(?:nodejs|process)_/.test(name));
    return own.map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`).sort();
  }

  /** The names of the page, as its comments declare them. */
  get declared(): ReadonlyMap<string, string> {
    return new Map(Array.from(this.text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name = '', type = '']) => [name, type]));
  }
}
