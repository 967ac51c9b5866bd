import type { ApiModule } from './read-api.js';

/** The command that writes the report and the reference. */
export const UPDATE = 'npm run api';

/**
 * The signatures of everything that a package exports: a change in this text is a change of the
 * interface.
 */
export function apiReport(modules: readonly ApiModule[]): string {
  const parts = modules.map(({ specifier, exports, unnamed }) => {
    const named = exports.map(({ signature, stability, tags }) => {
      const deprecated = tags.filter((tag) => tag.startsWith('@deprecated')).map((tag) => `// ${tag}\n`);
      return `// ${stability ?? 'unmarked'}\n${deprecated.join('')}${signature}`;
    });
    const declarations = [...named, ...unnamed.map(({ signature }) => `// not exported\n${signature}`)];
    return `## ${specifier}\n\n${exports.length} names.\n\n\`\`\`ts\n${declarations.join('\n\n')}\n\`\`\`\n`;
  });
  const head = `# The interface for plugins

Plugins compile against these signatures. \`${UPDATE}\` writes this file from the sources, and \`test/api.test.ts\` fails if it is
not current, so that the interface never changes by accident. Review its difference like code: removing or narrowing something
marked \`stable\` needs a new major version of the kernel.
`;
  return [head, ...parts].join('\n');
}
