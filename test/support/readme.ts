import { ConfigFile } from '../../kernel/src/host/configuration/config-file.js';
import { FileReader } from '../../kernel/src/host/configuration/entries.js';
import type { ReadEntry } from '../../kernel/src/host/configuration/entry.js';
import { Problems } from '../../kernel/src/host/configuration/problems.js';
import { packageName } from '../../kernel/src/host/plugin/loader.js';
import { layout } from '../../kernel/src/layout.js';

/** The sections of every plugin's README, in this order. Others may be among them. */
export const README_SECTIONS = ['What it does', 'Example', 'Settings', 'When things go wrong'] as const;

/** The marks around the settings list. */
const BEFORE = '<!-- settings -->';
const AFTER = '<!-- /settings -->';

/** The parsed README of a plugin. Lines of code blocks are not taken for headings. */
export class Readme {
  readonly title: string;
  /** The first paragraph, on one line. */
  readonly summary: string;
  /** The headings of the second level, in order. */
  readonly sections: readonly string[];
  readonly #text: string;

  constructor(text: string) {
    this.#text = text.replaceAll('\r\n', '\n');
    const prose = this.#text.replaceAll(/^(```|~~~).*?^\1/gms, '');
    const [, title = '', below = ''] = /^# ([^\n]+)\n(.*)/ms.exec(prose) ?? [];
    this.title = title.trim();
    this.summary = (below.trim().split(/\n\s*\n/)[0] ?? '').replaceAll(/\s+/g, ' ');
    this.sections = [...prose.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading.trim());
  }

  /** The text between the marks of the settings list, or undefined without marks. */
  get settings(): string | undefined {
    const [from, to] = this.#settingsRange();
    return from < 0 || to < from ? undefined : this.#text.slice(from, to).trim();
  }

  /** The text with a new settings list. Requires the marks. */
  withSettings(table: string): string {
    const [from, to] = this.#settingsRange();
    return `${this.#text.slice(0, from)}\n${table}\n${this.#text.slice(to)}`;
  }

  /** The first YAML block of the section "Example", or undefined. */
  get example(): string | undefined {
    const section = this.#text.split(/^## /m).find((section) => section.startsWith('Example\n'));
    return /^```ya?ml\n(.*?)^```/ms.exec(section ?? '')?.[1];
  }

  #settingsRange(): [number, number] {
    const before = this.#text.indexOf(BEFORE);
    return [before < 0 ? -1 : before + BEFORE.length, this.#text.indexOf(AFTER)];
  }
}

/**
 * The entries of a part of a configuration file that a plugin serves: those that name it, else
 * those that name a plugin by path. Other mistakes in the snippet are ignored.
 */
export function entriesServedBy(plugin: string, yaml: string): readonly ReadEntry[] {
  const file = new ConfigFile('plugboard.yaml', 'plugboard.yaml', yaml);
  const { entries } = new FileReader(file, layout, {}, {}, new Problems(file)).read();
  const named = entries.filter(
    ({ use, section }) => plugin === use || plugin === packageName(use, layout.sections[section]?.prefix ?? section),
  );
  return named.length > 0 ? named : entries.filter(({ use }) => use.startsWith('.'));
}
