import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import ts from 'typescript';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const sources = globSync('{kernel,plugins/*,plugin-template/*}/src/**/*.ts', { cwd: root }).sort();
const packages = [
  'kernel',
  ...globSync('{plugins,plugin-template}/*', { cwd: root }).filter((dir) => existsSync(join(root, dir, 'package.json'))),
];

interface Import {
  /** The importing file, from the root. */
  readonly from: string;
  /** As it is written. */
  readonly written: string;
  /** The imported file from the root, where the import is relative. */
  readonly file: string | undefined;
}

const imports: Import[] = sources.flatMap((from) =>
  ts.preProcessFile(readFileSync(join(root, from), 'utf8'), true, true).importedFiles.map(({ fileName: written }) => ({
    from,
    written,
    file: written.startsWith('.') ? relative(root, resolve(root, dirname(from), written)).replace(/\.js$/, '.ts') : undefined,
  })),
);

/** The package of a file. */
function home(file: string): string {
  return packages.find((dir) => file.startsWith(`${dir}/`)) ?? '';
}

function broken(rule: (one: Import) => boolean): string[] {
  return imports.filter(rule).map(({ from, written }) => `${from} imports ${written}`);
}

t.test('the host imports nothing of the rest of the kernel', async (t) => {
  t.strictSame(
    broken(({ from, file }) => from.startsWith('kernel/src/host/') && file !== undefined && !file.startsWith('kernel/src/host/')),
    [],
  );
});

/** What the host must not know: the domain, protocols, and plugins. */
const FOREIGN_WORDS = new Set(
  (
    'agent model tool session turn prompt http https route header bearer token chat playground websocket ' +
    'openai mcp jwt sqlite postgres demo koa'
  ).split(' '),
);
/** Names of libraries, and addresses. */
const ALLOWED = /InjectionToken|UNEXPECTED_TOKEN|https?:\/\/[^\s'`]+/g;

t.test('the host names no agent, protocol or plugin', async (t) => {
  const found = sources
    .filter((file) => file.startsWith('kernel/src/host/'))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8').replace(ALLOWED, '');
      const words = text.replace(/([a-z])([A-Z])/g, '$1 $2').match(/[A-Za-z]+/g) ?? [];
      const foreign = words.filter((word) => FOREIGN_WORDS.has(word.toLowerCase().replace(/s$/, '')));
      return [...new Set(foreign)].map((word) => `${file}: ${word}`);
    });
  t.strictSame(found, []);
});

t.test('the contracts import only the host', async (t) => {
  t.strictSame(
    broken(
      ({ from, file }) =>
        from.startsWith('kernel/src/contracts/') && file !== undefined && !/^kernel\/src\/(contracts|host)\//.test(file),
    ),
    [],
  );
});

t.test('the kernel knows no web framework and no plugin', async (t) => {
  t.strictSame(
    broken(({ from, written }) => from.startsWith('kernel/') && /^(koa|@koa\/|@plugboard\/|plugboard-)/.test(written)),
    [],
  );
});

t.test('a package reaches another one through its entry point only', async (t) => {
  t.strictSame(
    broken(({ from, file }) => file !== undefined && home(file) !== home(from)),
    [],
  );
  t.strictSame(
    broken(
      ({ written }) =>
        /^@plugboard\/[^/]+\/.+/.test(written) &&
        !/^@plugboard\/(kernel\/(contracts|injection|internal)|[^/]+\/testing)$/.test(written),
    ),
    [],
  );
  t.strictSame(
    broken(({ from, written }) => written === '@plugboard/kernel/internal' && !/^plugins\/(cli|testing)\//.test(from)),
    [],
    'only the program and the test kit use what the kernel does not promise',
  );
  t.strictSame(
    broken(({ from, written }) => /^@plugboard\/([^/]+\/)?testing$/.test(written) && !from.includes('/src/testing/')),
    [],
  );
});

/**
 * The folders of a package, or of a folder, from the top down: each imports only those after it,
 * and `config.ts`.
 */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  'kernel/src/contracts': ['', 'runtime', 'store', 'events', 'model', 'tools', 'callers', 'messages', 'commands'],
  'kernel/src/host': ['', 'reload', 'registration', 'lifecycle', 'configuration', 'plugin', 'options', 'log', 'base'],
  'plugins/cli': ['', 'commands', 'chat', 'running', 'scaffold', 'command', 'schema', 'server', 'diagnosis', 'base'],
  'plugins/testing': [
    '',
    'server',
    'session-store',
    'session-store/cases',
    'session-store/support',
    'suites',
    'plugin',
    'contract',
    'context',
    'model-server',
    'base',
  ],
  'plugins/agent-runtime': [
    '',
    'sessions',
    'sessions/conversation',
    'sessions/pending',
    'sessions/history',
    'sessions/shared',
    'sessions/store',
    'engine',
    'engine/turn',
    'engine/revision',
    'engine/limits',
    'engine/model',
    'engine/tools',
    'engine/directory',
    'engine/messages',
    'engine/log',
    'engine/diagnostics',
  ],
  'plugins/transport-telegram': ['', 'receiving', 'sending', 'formatting', 'chats', 'api', 'base'],
  'plugins/channel-kit': ['', 'receiving', 'chats', 'replies', 'state', 'platform', 'base'],
  'plugins/auth-bearer': ['', 'commands', 'registry', 'provider', 'storage', 'files', 'tokens'],
  'plugins/model-ai-sdk': ['', 'answer', 'images', 'request', 'provider', 'http', 'failure', 'json'],
  'plugins/model-openai': ['', 'http', 'answer', 'failure', 'request', 'provider', 'extra', 'json'],
  'plugins/open-responses': ['', 'service', 'live', 'request', 'items', 'events', 'tools'],
  'plugins/plugin-usage': ['', 'report', 'charging', 'ledger', 'money'],
  'plugins/openai-protocol': ['', 'pages', 'turn', 'body', 'errors'],
  'plugins/plugin-record': ['', 'commands', 'replay', 'record', 'format'],
  'plugins/store-sqlite': ['testing', '', 'tables', 'database', 'errors'],
  'plugins/store-postgres': ['testing', '', 'shared', 'tables', 'database', 'errors'],
  'plugins/tool-mcp': ['', 'auth', 'accepted', 'http', 'process', 'protocol', 'tools', 'errors'],
  'plugins/tool-http': ['', 'exchange', 'request', 'operation', 'schema', 'document', 'errors'],
  'plugins/transport-slack': ['', 'receiving', 'sending', 'web-api', 'base'],
  'plugins/transport-http': ['', 'testing', 'server', 'application', 'gate', 'body', 'exchange', 'limits', 'routing', 'errors'],
  'plugins/transport-chat-completions': ['', 'testing', 'answer', 'request'],
  'plugins/transport-conversations': ['', 'routes', 'turns', 'items'],
  'plugins/transport-messages': ['', 'answer', 'request', 'errors'],
  'plugins/transport-websocket': ['', 'upgrade', 'connection', 'messages'],
};

t.test('folders of a package import downwards', async (t) => {
  for (const [dir, layers] of Object.entries(LAYERS)) {
    const top = packages.includes(dir) ? `${dir}/src` : dir;
    const folder = (file: string) => dirname(relative(top, file)).replace(/^\.$/, '');
    const inside = sources.filter((file) => file.startsWith(`${top}/`));
    t.strictSame([...new Set(inside.map(folder))].sort(), [...layers].sort(), `the folders of ${dir}`);
    t.strictSame(
      broken(({ from, file }) => {
        if (!inside.includes(from) || !file?.startsWith(`${top}/`) || file === `${top}/config.ts`) return false;
        return layers.indexOf(folder(file)) < layers.indexOf(folder(from));
      }),
      [],
    );
  }
});

t.test('the engine of the runtime knows no session and no store', async (t) => {
  const inEngine = (file: string) => file.startsWith('plugins/agent-runtime/src/engine/');
  t.strictSame(
    broken(({ from, file }) => inEngine(from) && file?.includes('/src/sessions/') === true),
    [],
  );
  const contracts = globSync('kernel/src/contracts/store/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/^export (?:abstract )?\w+ (\w+)/gm)].map(([, name]) => name),
  );
  t.ok(contracts.includes('SessionStores'));
  const used = sources.filter(inEngine).flatMap((file) => {
    const words = new Set(readFileSync(join(root, file), 'utf8').match(/\w+/g));
    return contracts.filter((name) => name !== undefined && words.has(name)).map((name) => `${file}: ${name}`);
  });
  t.strictSame(used, []);
});

t.test('files import downwards: there is no circle', async (t) => {
  const below = Map.groupBy(
    imports.filter(({ file }) => file !== undefined),
    ({ from }) => from,
  );
  const done = new Set<string>();
  const circles: string[] = [];
  const walk = (file: string, path: readonly string[]) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '));
    if (done.has(file) || path.includes(file)) return;
    for (const { file: next } of below.get(file) ?? []) if (next) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of sources) walk(file, []);
  t.strictSame(circles, []);
});

t.test('every package imports only what its package.json names', async (t) => {
  const missing = imports.flatMap(({ from, written, file }) => {
    if (file !== undefined || written.startsWith('node:')) return [];
    const {
      name,
      dependencies = {},
      peerDependencies = {},
    } = JSON.parse(readFileSync(join(root, home(from), 'package.json'), 'utf8'));
    const wanted = written.split('/', written.startsWith('@') ? 2 : 1).join('/');
    return wanted === name || wanted in dependencies || wanted in peerDependencies ? [] : [`${from} imports ${written}`];
  });
  t.strictSame(missing, []);
});

t.test('the HTTP transport does not know the protocol of its routes', async (t) => {
  t.strictSame(
    broken(({ from, written }) => from.startsWith('plugins/transport-http/') && written === '@plugboard/openai-protocol'),
    [],
  );
});

t.test('code for the Messages API does not use the OpenAI dialect', async (t) => {
  t.strictSame(
    broken(
      ({ from, written }) =>
        /^plugins\/(transport-messages|turn-routes)\//.test(from) &&
        /openai-protocol|chat-completions|open-responses/.test(written),
    ),
    [],
  );
});

t.test('only the graph of a plugin constructs the classes that a constructor of it takes', async (t) => {
  const texts = sources.map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
  const graphs = texts.flatMap(({ file, text }) => {
    const classes = [...text.matchAll(/@inject\((\w+)\)|createGraph\(ctx, (\w+)\)/g)].map(
      ([, taken, root]) => taken ?? root ?? '',
    );
    return classes.length === 0 ? [] : [{ file, classes }];
  });
  t.ok(graphs.length > 1);
  const constructed = graphs.flatMap(({ file, classes }) =>
    texts
      .filter((one) => home(one.file) === home(file))
      .flatMap((one) => classes.filter((name) => one.text.includes(`new ${name}(`)).map((name) => `${one.file}: ${name}`)),
  );
  t.strictSame(constructed, []);
});

t.test('the libraries of the protocols export nothing of another package', async (t) => {
  const again = sources.filter(
    (file) =>
      /^plugins\/(openai-protocol|open-responses|turn-routes)\//.test(file) &&
      /^export [^;]* from '@plugboard\//m.test(readFileSync(join(root, file), 'utf8')),
  );
  t.strictSame(again, []);
});

t.test('the libraries of the protocols export only what another package imports', async (t) => {
  const files = globSync('{plugins,test}/**/*.ts', { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] });
  const texts = files.map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
  for (const library of ['openai-protocol', 'open-responses', 'turn-routes']) {
    const index = readFileSync(join(root, `plugins/${library}/src/index.ts`), 'utf8');
    t.notMatch(index, /^export \* from/m, 'exports are named');
    const imported = texts
      .filter(({ file }) => !file.startsWith(`plugins/${library}/src/`))
      .flatMap(({ text }) => [
        ...text.matchAll(new RegExp(`(?:import|export) (?:type )?{([^}]*)} from '@plugboard/${library}'`, 'g')),
      ])
      .flatMap(([, list = '']) => namesIn(list));
    const exported = [...index.matchAll(/^export (?:type )?{([^}]*)}/gm)].flatMap(([, list = '']) => namesIn(list));
    t.ok(exported.length > 5);
    t.strictSame(
      exported.filter((name) => !imported.includes(name)),
      [],
    );
  }
});

/** The names of an import or export list. */
function namesIn(list: string): string[] {
  return list
    .split(',')
    .map(
      (item) =>
        item
          .trim()
          .replace(/^type /, '')
          .split(' as ')[0] ?? '',
    )
    .filter((name) => name !== '');
}

/** Packages that are not plugins. */
const LIBRARIES = [
  'kernel',
  'plugins/cli',
  'plugins/testing',
  'plugins/openai-protocol',
  'plugins/open-responses',
  'plugins/turn-routes',
  'plugins/channel-kit',
  'plugins/store-kit',
];

t.test('every plugin has the same files', async (t) => {
  for (const dir of packages.filter((one) => !LIBRARIES.includes(one))) {
    for (const file of ['package.json', 'tsconfig.json', 'README.md', 'src/index.ts', 'src/config.ts']) {
      t.ok(existsSync(join(root, dir, file)), `${dir}/${file}`);
    }
    t.ok(globSync(`${dir}/test/*.test.ts`, { cwd: root }).length > 0, `${dir} has tests`);
  }
});
