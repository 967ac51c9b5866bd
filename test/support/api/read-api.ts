import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

/** A name that a package exports. */
export interface ApiExport {
  readonly name: string;
  /** `function`, `class`, `interface`, `type` or `constant`. */
  readonly kind: string;
  readonly stability: 'stable' | 'experimental' | undefined;
  /** The package that it is re-exported from, if it is not our own. */
  readonly origin: string | undefined;
  /** The source file that declares it. */
  readonly file: string;
  /** The doc comment without its tags; empty if there is none. */
  readonly summary: string;
  /** The lines of the doc comment's tags other than the stability: `@throws …`. */
  readonly tags: readonly string[];
  /** The declaration with the comments of its members. */
  readonly declaration: string;
  /** The declaration without comments: what callers compile against. */
  readonly signature: string;
  /** The types in the declaration that this package declares and does not export. */
  readonly hidden: readonly HiddenType[];
}

interface HiddenType {
  readonly name: string;
  /** The source file that declares it. */
  readonly file: string;
}

/** What one import path exports. */
export interface ApiModule {
  /** `@plugboard/kernel/contracts`. */
  readonly specifier: string;
  /** The comment at the top of the entry file. */
  readonly summary: string;
  /** In alphabetical order. */
  readonly exports: readonly ApiExport[];
  /**
   * The types that the exports refer to, directly or not, and that no import path of the package
   * exports: nobody needs their names. In alphabetical order.
   */
  readonly unnamed: readonly ApiExport[];
}

/** The import path of what only packages of this repository use. */
const INTERNAL = './internal';

const printer = ts.createPrinter({ removeComments: true });

/** Reads what a package exports, by the declarations that the last build wrote. */
export function readApi(packageDir: string): readonly ApiModule[] {
  const manifest = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  };
  const entries = Object.entries(manifest.exports).flatMap(([path, target]) =>
    typeof target === 'string' || path === INTERNAL
      ? []
      : [{ specifier: join(manifest.name, path), file: join(packageDir, target['@plugboard/source'] ?? '') }],
  );
  const program = createProgram(
    packageDir,
    entries.map(({ file }) => file),
  );
  const emitted = builtDeclarations(packageDir, program);
  const checker = program.getTypeChecker();
  const modules = entries.map(({ specifier, file }) => ({ specifier, file, symbols: symbolsOf(checker, program, file) }));
  const exported = new Set(modules.flatMap(({ symbols }) => symbols.map(({ symbol }) => symbol.name)));
  const known = new Set(exported);
  return modules.map(({ specifier, file, symbols }) => {
    const exports = symbols.map(({ name, symbol }) => readExport(name, symbol, packageDir, emitted, exported));
    const summary = headComment(program.getSourceFile(file)?.text ?? '');
    return { specifier, summary, exports, unnamed: unnamedTypes(exports, emitted, exported, known) };
  });
}

/** Types that only compute another type, which editors show in full. */
const COMPUTING = new Set(['InferType', 'Messages']);

/** @param known receives the names of the types. Those that it has are left out. */
function unnamedTypes(
  exports: readonly ApiExport[],
  emitted: ReadonlyMap<string, ts.SourceFile>,
  exported: ReadonlySet<string>,
  known: Set<string>,
): ApiExport[] {
  const found: ApiExport[] = [];
  const left = exports.flatMap(({ hidden }) => hidden);
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const { name, file } = next;
    if (known.has(name) || COMPUTING.has(name)) continue;
    known.add(name);
    const one = describe(name, name, file, emitted, exported);
    found.push(one);
    left.push(...one.hidden);
  }
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** A program of import paths. Their own imports are enough to find what they export. */
function createProgram(packageDir: string, files: readonly string[]): ts.Program {
  const configFile = join(packageDir, 'tsconfig.json');
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(configFile, ts.sys.readFile).config,
    ts.sys,
    packageDir,
    undefined,
    configFile,
  );
  return ts.createProgram(files, { ...options, composite: false });
}

/** The declarations of the last build by the path of their source file. */
function builtDeclarations(packageDir: string, program: ts.Program): ReadonlyMap<string, ts.SourceFile> {
  const [sources, built] = [join(packageDir, 'src/'), join(packageDir, 'dist/')];
  const files = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(sources));
  return new Map(
    files.map(({ fileName }) => {
      const path = join(built, fileName.slice(sources.length).replace(/\.ts$/, '.d.ts'));
      if (!existsSync(path)) throw new Error(`${path} is missing: run "npm run build"`);
      return [fileName, ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)];
    }),
  );
}

function symbolsOf(checker: ts.TypeChecker, program: ts.Program, file: string): { name: string; symbol: ts.Symbol }[] {
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  if (module === undefined) throw new Error(`${file} exports nothing`);
  return checker
    .getExportsOfModule(module)
    .map((symbol) => ({
      name: symbol.name,
      symbol: symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function readExport(
  name: string,
  symbol: ts.Symbol,
  packageDir: string,
  emitted: ReadonlyMap<string, ts.SourceFile>,
  exported: ReadonlySet<string>,
): ApiExport {
  const file = symbol.declarations?.[0]?.getSourceFile().fileName ?? '';
  if (!emitted.has(file)) {
    const isForeign = file.includes('node_modules/');
    const origin = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? relative(packageDir, file);
    const signature = `export { ${name} } from '${origin}';`;
    const summary = `The export \`${name}\` of ${isForeign ? `the package ${origin}` : 'the kernel'}.`;
    return {
      name,
      kind: 'function',
      stability: 'stable',
      origin,
      file,
      summary,
      tags: [],
      declaration: signature,
      signature,
      hidden: [],
    };
  }
  return describe(name, symbol.name, file, emitted, exported);
}

/** @param declared the name in the file; it may be exported under another one. */
function describe(
  name: string,
  declared: string,
  file: string,
  emitted: ReadonlyMap<string, ts.SourceFile>,
  exported: ReadonlySet<string>,
): ApiExport {
  const declarations = emitted.get(file);
  if (declarations === undefined) throw new Error(`${file} declares nothing`);
  const statements = declarations.statements.filter((statement) => namesOf(statement).includes(declared));
  const comment = statements.map(commentOf).find((text) => text !== '') ?? '';
  const { summary, tags } = parseComment(comment);
  const rest = tags.filter((tag) => !/^@(public|experimental)$/.test(tag));
  return {
    name,
    kind: kindOf(statements[0]),
    stability: tags.includes('@public') ? 'stable' : tags.includes('@experimental') ? 'experimental' : undefined,
    origin: undefined,
    file,
    summary,
    tags: rest,
    declaration: withoutPaths(statements.map(publicText).join('\n')),
    signature: withoutPaths(
      statements.map((statement) => printer.printNode(ts.EmitHint.Unspecified, statement, declarations)).join('\n'),
    ),
    hidden: hiddenTypes(statements, file, emitted).filter((type) => !exported.has(type.name)),
  };
}

function namesOf(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.getText());
  const { name } = statement as ts.Statement & { readonly name?: ts.Node };
  return name ? [name.getText()] : [];
}

function kindOf(statement: ts.Statement | undefined): string {
  if (statement === undefined) return 'constant';
  if (ts.isFunctionDeclaration(statement)) return 'function';
  if (ts.isClassDeclaration(statement)) return 'class';
  if (ts.isInterfaceDeclaration(statement)) return 'interface';
  return ts.isTypeAliasDeclaration(statement) ? 'type' : 'constant';
}

/** The doc comment in front of a node, as it is written. */
function commentOf(node: ts.Node): string {
  const text = node.getSourceFile().text;
  const ranges = ts.getLeadingCommentRanges(text, node.getFullStart()) ?? [];
  return ranges.map(({ pos, end }) => text.slice(pos, end)).findLast((comment) => comment.startsWith('/**')) ?? '';
}

/**
 * The text of a declaration as it is written, without its own doc comment and without private
 * members.
 */
function publicText(statement: ts.Statement): string {
  const text = statement.getText();
  const hidden = ts.isClassDeclaration(statement)
    ? statement.members.filter(
        (member) =>
          member.name && (ts.isPrivateIdentifier(member.name) || ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private),
      )
    : [];
  return hidden.reduce((rest, member) => rest.replace(member.getFullText(), ''), text);
}

/** Shortens the types that the compiler has inferred: `import("../plugin.js").Plugin`. */
function withoutPaths(declaration: string): string {
  return declaration.replace(/\bimport\("[^"]+"\)\./g, '');
}

/** Divides a doc comment into its text and its tags. */
function parseComment(comment: string): { readonly summary: string; readonly tags: readonly string[] } {
  const lines = comment
    .replace(/^\/\*\*\s?|\s*\*\/$/g, '')
    .replace(/ @(public|experimental)$/, '\n@$1')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trimEnd());
  const tags: string[] = [];
  const text: string[] = [];
  let isFenced = false;
  for (const line of lines) {
    if (line.startsWith('```')) isFenced = !isFenced;
    if (!isFenced && /^@\w/.test(line)) tags.push(line);
    else if (tags.length > 0 && line.trim() !== '') tags.push(`${tags.pop()} ${line.trim()}`);
    else text.push(line);
  }
  return { summary: text.join('\n').trim(), tags };
}

/** The comment at the top of a file. */
function headComment(text: string): string {
  const comment = /^\s*\/\*\*[\s\S]*?\*\//.exec(text)?.[0].trim() ?? '';
  return parseComment(comment).summary;
}

/** The types in declarations of a file that this package declares. */
function hiddenTypes(
  statements: readonly ts.Statement[],
  file: string,
  emitted: ReadonlyMap<string, ts.SourceFile>,
): HiddenType[] {
  const homes = homesOf(file, emitted);
  const found = new Map<string, string>();
  const walk = (node: ts.Node): void => {
    const name =
      ts.isTypeReferenceNode(node) && ts.isIdentifier(node.typeName)
        ? node.typeName.text
        : ts.isExpressionWithTypeArguments(node)
          ? node.expression.getText()
          : undefined;
    const home = name === undefined ? undefined : homes.get(name);
    if (name !== undefined && home !== undefined) found.set(name, home);
    const isPrivate = ts.isClassElement(node) && node.name && ts.isPrivateIdentifier(node.name);
    if (!isPrivate && !ts.isConstructorDeclaration(node)) ts.forEachChild(node, walk);
  };
  statements.forEach(walk);
  return Array.from(found, ([name, home]) => ({ name, file: home })).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The source files of the names that a file declares, or imports from this package. */
function homesOf(file: string, emitted: ReadonlyMap<string, ts.SourceFile>): ReadonlyMap<string, string> {
  const homes = new Map<string, string>();
  for (const statement of emitted.get(file)?.statements ?? []) {
    for (const name of namesOf(statement)) homes.set(name, file);
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) continue;
    const home = join(dirname(file), statement.moduleSpecifier.text).replace(/\.js$/, '.ts');
    const declared = new Set(emitted.get(home)?.statements.flatMap(namesOf));
    for (const [name] of statement.getText().matchAll(/\b[A-Z]\w+/g)) if (declared.has(name)) homes.set(name, home);
  }
  return homes;
}
