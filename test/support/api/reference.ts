import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import type { ApiExport, ApiModule } from './read-api.js';

/** The command that writes the reference. */
export const UPDATE = 'npm run api';

/** The reference page: everything that a package exports, each with the first sentence about it. */
export function apiReference(modules: readonly ApiModule[]): string {
  const head = `# API for plugins

What plugins and programs import, generated from the doc comments (\`${UPDATE}\`), by folder of the sources. Your editor
shows the whole comments. [Writing plugins](../guides/writing-plugins.md) introduces the interface by examples.

A change that breaks users comes only with a new major version, except for what is marked \`@experimental\`: the change
log says how that changes, and your editor shows its members. All properties are \`readonly\`, and optional ones may be \`undefined\`: both are left out here.

${modules.map(({ specifier, exports }) => `- [\`${specifier}\`](#${slug(specifier)}): ${exports.length} names`).join('\n')}
`;
  return [head, ...modules.map(page), `<!-- all signatures: ${digest(modules)} -->\n`].join('\n');
}

/**
 * Changes with every signature, also of the types that no import path exports, and of the members
 * that the page leaves out.
 */
function digest(modules: readonly ApiModule[]): string {
  const signatures = modules.flatMap(({ exports, unnamed }) => [...exports, ...unnamed].map(({ signature }) => signature));
  return createHash('sha256').update(signatures.join('\n')).digest('hex').slice(0, 16);
}

function page({ specifier, summary, exports }: ApiModule): string {
  const groups = Map.groupBy(exports, ({ file }) => basename(dirname(file)));
  const sections = Array.from(groups, ([name, group]) => `### ${name}\n\n${block(group.map(described))}`);
  return [`## ${specifier}`, firstSentence(summary), ...sections].join('\n\n').concat('\n');
}

function block(declarations: readonly string[]): string {
  return `\`\`\`ts\n${declarations.join('\n\n')}\n\`\`\``;
}

/**
 * A declaration below the first sentence about it. A contract that plugins implement has all of its
 * numbered rules.
 */
function described({ kind, stability, summary, tags, signature, declaration }: ApiExport): string {
  const isStable = stability === 'stable';
  const text = isStable && kind !== 'class' && /^1\. /m.test(summary) ? summary : firstSentence(summary);
  const errors = tags.filter((tag) => tag.startsWith('@throws'));
  const said = [...(isStable ? [] : ['@experimental']), text, ...errors].join(' ');
  return `${said.includes('\n') ? `/** ${said} */` : `// ${said}`}\n${compact(isStable ? withShortComments(declaration) : withoutMembers(kind, signature))}`;
}

/** The members of an experimental interface are left to the editor. */
function withoutMembers(kind: string, signature: string): string {
  return kind === 'interface' ? signature.replace(/ \{[\s\S]*\}$/, ';') : signature;
}

/** The units of numbers: what a name and a type do not say. */
const UNIT = /\b(?:milliseconds|seconds|minutes|bytes|characters|tokens)\b/i;

/** Of the comments of members, the sentences that name an error or a unit. */
function withShortComments(declaration: string): string {
  return declaration.replace(/\s*\/\*\*([\s\S]*?)\*\//g, (_, text: string) => {
    const sentences = sentencesOf(text.replaceAll(/^\s*\* ?/gm, ''));
    const kept = sentences.filter((sentence) => sentence.startsWith('@throws') || UNIT.test(sentence));
    return kept.length === 0 ? '' : `\n    // ${kept.join(' ')}`;
  });
}

function firstSentence(text: string): string {
  return sentencesOf(text.split('\n\n', 1).join())[0] ?? '';
}

function sentencesOf(text: string): string[] {
  return text
    .replaceAll(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.!?]\)?) (?=[A-Z`@])/);
}

/** What callers compile against, without what is the same everywhere. */
function compact(declaration: string): string {
  return declaration
    .replaceAll(/^export (?:declare )?|\breadonly /gm, '')
    .replaceAll(/(\w\?: .*) \| undefined;$/gm, '$1;')
    .replaceAll(/^ *(?:#private|name = "\w+");\n/gm, '')
    .replaceAll('    ', '  ');
}

/** The anchor of a heading, as GitHub makes it. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
