import type { ApiExport, ApiModule } from './read-api.js';

/** The command that writes the reference. */
export const UPDATE = 'npm run api';

/** The reference page: everything that a package exports, with its documentation. */
export function apiReference(modules: readonly ApiModule[]): string {
  const head = `# API for plugins

What plugins and programs import, generated from the sources (\`${UPDATE}\`), so that the interface never changes by
accident: \`test/api.test.ts\` fails if this page is not current. The guide to
[writing plugins](../guides/writing-plugins.md) introduces it by examples.

- **stable**: a change that breaks users comes only with a new major version.
- **experimental**: may change in any version; the change log says how. Your editor shows the comments of their members.

${modules.map(({ specifier, exports }) => `- [\`${specifier}\`](#${slug(specifier)}): ${exports.length} names`).join('\n')}
`;
  return [head, ...modules.map(page)].join('\n');
}

function page({ specifier, summary, exports, unnamed }: ApiModule): string {
  return [`## ${specifier}`, summary, ...exports.map(section), ...unnamedSection(unnamed)].join('\n\n').concat('\n');
}

/** Types that the import path does not export: a change of one is a change of the interface too. */
function unnamedSection(unnamed: readonly ApiExport[]): string[] {
  if (unnamed.length === 0) return [];
  const signatures = unnamed.map(({ signature }) => signature).join('\n');
  return [`### Types without an export\n\nTypeScript infers them.\n\n\`\`\`ts\n${signatures}\n\`\`\``];
}

/**
 * What is stable is shown with all that is said of it. What may change in any version is shown by
 * its signature and the first paragraph: the editor shows the rest.
 */
function section(one: ApiExport): string {
  if (one.stability !== 'stable') {
    const [paragraph = ''] = one.summary.split('\n\n');
    return [`### ${heading(one)}`, 'experimental', paragraph, `\`\`\`ts\n${one.signature}\n\`\`\``].join('\n\n');
  }
  const { summary, tags, declaration } = one;
  const list = tags.map((tag) => `- ${tag.replace(/^@(\w+)\s*/, (_, word: string) => `${LABELS[word] ?? word}: `)}`);
  return [
    `### ${heading(one)}`,
    'stable',
    summary,
    ...(list.length > 0 ? [list.join('\n')] : []),
    `\`\`\`ts\n${declaration}\n\`\`\``,
  ].join('\n\n');
}

/** With the kind, because some names differ only in letter case: `Clock` and `CLOCK`. */
function heading({ kind, name }: ApiExport): string {
  return `${kind} ${name}`;
}

const LABELS: Readonly<Record<string, string>> = {
  throws: '**Throws**',
  param: '**Parameter**',
  returns: '**Returns**',
  deprecated: '**Deprecated**',
};

/** The anchor of a heading, as GitHub makes it. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
