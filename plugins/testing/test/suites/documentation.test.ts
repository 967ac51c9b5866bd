import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';

/**
 * Every place that the suites cite exists: the interface, its numbered statement, or its member.
 */

const root = join(import.meta.dirname, '../../../..');

/**
 * Declarations of interfaces, types and classes by name, with their doc comments and member names.
 */
const declared = new Map<string, { readonly doc: string; readonly members: readonly string[] }>();
for (const path of globSync('{kernel,plugins/*}/src/**/*.ts', { cwd: root })) {
  const file = ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.ESNext, true);
  file.forEachChild((node) => {
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node)) {
      const members = 'members' in node ? node.members.map((member) => member.name?.getText(file) ?? '') : [];
      const doc = file.text.slice(node.pos, node.getStart(file));
      if (node.name) declared.set(node.name.text, { doc, members });
    }
  });
}

const suites = globSync('plugins/{testing/src,*/src/testing}/**/*.ts', { cwd: root });
const cited = suites.flatMap((path) =>
  [...readFileSync(join(root, path), 'utf8').matchAll(/'([A-Z]\w+)(?:\.(\w+)| (\d+))?',\s*async/g)].map(
    ([all, name = '', member, statement]) => ({ where: `${path}: ${all.split(',')[0]}`, name, member, statement }),
  ),
);

t.test('every place that a suite cites exists', async (t) => {
  t.ok(cited.length > 60, `${cited.length} citations`);
  for (const { where, name, member, statement } of cited) {
    const found = declared.get(name);
    if (!t.ok(found, `${where}: ${name} is declared`) || !found) continue;
    if (member) t.ok(found.members.includes(member), `${where}: has the member`);
    if (statement) t.match(found.doc, new RegExp(`^ \\* ${statement}\\. `, 'm'), `${where}: has the statement`);
  }
});
