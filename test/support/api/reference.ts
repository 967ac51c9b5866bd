import type { ApiExport, ApiModule } from './read-api.js';

/** The reference page: everything that a package exports, with its documentation. */
export function apiReference(modules: readonly ApiModule[]): string {
  const head = `# API for plugins

What plugins and programs import, generated from the doc comments (\`npm run api\`). The guide to
[writing plugins](../guides/writing-plugins.md) introduces it by examples.

- **stable**: a change that breaks users comes only with a new major version.
- **experimental**: may change in any version; the change log says how.

${modules.map(({ specifier, exports }) => `- [\`${specifier}\`](#${slug(specifier)}): ${exports.length} names`).join('\n')}
`;
  return [head, ...modules.map(page)].join('\n');
}

function page({ specifier, summary, exports, unnamed }: ApiModule): string {
  const rows = exports.map(
    (one) => `| [\`${one.name}\`](#${slug(heading(one))}) | ${one.kind} | ${one.stability} | ${firstSentence(one.summary)} |`,
  );
  const index = ['| name | kind | stability | |', '| --- | --- | --- | --- |', ...rows].join('\n');
  return [`## ${specifier}`, summary, index, ...exports.map(section), ...unnamedSection(unnamed)].join('\n\n').concat('\n');
}

/** The types that the import path does not export, for those who read about others. */
function unnamedSection(unnamed: readonly ApiExport[]): string[] {
  if (unnamed.length === 0) return [];
  const declarations = unnamed.map(({ summary, declaration }) => [...comment(summary), declaration].join('\n'));
  const words = 'The exports above refer to these types. They are not exported: TypeScript infers them.';
  return ['### Types without an export', words, `\`\`\`ts\n${declarations.join('\n\n')}\n\`\`\``];
}

function comment(text: string): string[] {
  return text === '' ? [] : ['/**', ...text.split('\n').map((line) => ` * ${line}`.trimEnd()), ' */'];
}

function section(one: ApiExport): string {
  const { summary, tags, declaration } = one;
  const list = tags.map((tag) => `- ${tag.replace(/^@(\w+)\s*/, (_, word: string) => `${LABELS[word] ?? word}: `)}`);
  return [
    `### ${heading(one)}`,
    `${one.stability}`,
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

function firstSentence(text: string): string {
  const [paragraph = ''] = text.split('\n\n');
  const line = paragraph.replaceAll('\n', ' ');
  const sentence = /^.*?[.:](?= [A-Z1]|$)/.exec(line)?.[0] ?? line;
  return sentence.replace(/:$/, '.').replaceAll('|', '\\|');
}
