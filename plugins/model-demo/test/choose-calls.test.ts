import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import t from 'tap';
import { chooseCalls } from '../src/choose-calls.js';

function tool(
  name: string,
  description: string,
  properties: Record<string, unknown> = {},
  required: readonly string[] = [],
): ToolDeclaration {
  return { name, description, inputSchema: { type: 'object', properties, required } };
}

const text = { type: 'string' };

const CLOCK = tool('clock', 'Tells the current date and time in a time zone.', { timeZone: text });
const DICE = tool('dice', 'Rolls dice.', { dice: { type: 'integer' }, sides: { type: 'integer' } });

/** As @modelcontextprotocol/server-filesystem declares them. */
const FILES = [
  tool(
    'files__read_text_file',
    'Read the complete contents of a file from the file system as text. Handles encodings.',
    { path: text, tail: { type: 'number' }, head: { type: 'number' } },
    ['path'],
  ),
  tool(
    'files__read_multiple_files',
    'Read the contents of multiple files simultaneously.',
    { paths: { type: 'array', items: text } },
    ['paths'],
  ),
  tool(
    'files__write_file',
    'Create a new file or completely overwrite an existing file with new content.',
    { path: text, content: text },
    ['path', 'content'],
  ),
  tool(
    'files__edit_file',
    'Make line-based edits to a text file.',
    { path: text, edits: { type: 'array', items: { type: 'object' } } },
    ['path', 'edits'],
  ),
  tool('files__list_directory', 'Get a detailed listing of all files and directories in a specified path.', { path: text }, [
    'path',
  ]),
  tool(
    'files__list_directory_with_sizes',
    'Get a detailed listing of all files and directories, including sizes.',
    { path: text, sortBy: { type: 'string', enum: ['name', 'size'], default: 'name' } },
    ['path'],
  ),
  tool('files__move_file', 'Move or rename files and directories.', { source: text, destination: text }, [
    'source',
    'destination',
  ]),
  tool(
    'files__search_files',
    'Recursively search for files and directories matching a pattern.',
    { path: text, pattern: text, excludePatterns: { type: 'array', items: text } },
    ['path', 'pattern'],
  ),
  tool('files__list_allowed_directories', 'Returns the list of directories that this server is allowed to access.'),
];

const ALL = [CLOCK, DICE, ...FILES];

/** The calls as `name(arguments)`. */
function called(prompt: string, tools: readonly ToolDeclaration[] = ALL, choice?: unknown): readonly string[] {
  return chooseCalls(prompt, tools, choice).map((call) => `${call.name}(${JSON.stringify(call.arguments)})`);
}

t.test('calls a tool if the prompt contains a word of its name or purpose', async (t) => {
  t.same(called('What time is it?'), ['clock({})']);
  t.same(called('WHAT IS THE DATE TODAY'), ['clock({})']);
  t.same(called('list allowed directories'), ['files__list_allowed_directories({})']);
  t.same(called('a throw of the dice, please'), ['dice({})']);
  t.same(called('listing', [tool('get__listings', 'Anything')]), ['get__listings({})']);
  t.same(
    called('the weather?', [tool('weather__get', 'Anything')]),
    ['weather__get({})'],
    'uses the entry if the own name has only stop words',
  );
  t.same(called('read profile', [tool('readProfile', 'Anything')]), ['readProfile({})']);
});

t.test('stop words call no tool', async (t) => {
  for (const prompt of [
    '',
    'Hello, how are you?',
    'Who are you',
    'Tell me a story about a dragon',
    'Please use it for me now',
    '你好',
  ]) {
    t.same(called(prompt), [], prompt);
  }
});

t.test('a word of the description does not call a tool that may change something', async (t) => {
  const reset = tool('reset', 'Deletes all data.');
  t.same(called('which data is there?', [reset]), []);
  t.same(called('reset', [reset]), ['reset({})']);
});

t.test('calls a tool with required arguments only if the prompt has its verb and all of them', async (t) => {
  t.same(called('list the files in ./data'), ['files__list_directory({"path":"./data"})']);
  t.same(called('write ./notes.txt', FILES), [], 'the content is missing');
  t.same(called('compare the files ./a and ./b', FILES), [], 'the prompt does not say "move"');
  t.same(called('edit the text file ./a', FILES), [], 'a list of objects cannot be filled in');
  t.same(called('read', FILES), []);
});

t.test('calls the best match, and others only for words that it does not cover', async (t) => {
  t.same(called('list the directory ./data with sizes, by size'), [
    'files__list_directory_with_sizes({"path":"./data","sortBy":"size"})',
  ]);
  t.same(called('list the files in ./data, and what time is it in Tokyo?'), [
    'files__list_directory({"path":"./data"})',
    'clock({"timeZone":"Asia/Tokyo"})',
  ]);
  const many = ['red', 'green', 'blue', 'white'].map((name) => tool(name, name));
  t.same(called('red green blue white', many), ['red({})', 'green({})', 'blue({})'], 'at most three');
});

t.test('takes texts from quotes of any kind, but not from apostrophes', async (t) => {
  const utter = [tool('utter', 'Says it', { one: text, other: text }, ['one', 'other'])];
  for (const prompt of [
    'utter "a b" and "c"',
    "utter 'a b' and 'c'",
    'utter “a b” and “c”',
    'utter `a b` and `c`',
    'utter «a b» and «c»',
  ]) {
    t.same(called(prompt, utter), ['utter({"one":"a b","other":"c"})'], prompt);
  }
  t.same(called("utter what's mine and what's yours", utter), []);
});

t.test('takes paths and URLs without quotes, and prefers them to texts', async (t) => {
  t.same(called('read ./data/hello.txt.'), ['files__read_text_file({"path":"./data/hello.txt"})']);
  t.same(called('list the directory .'), ['files__list_directory({"path":"."})']);
  t.same(called('list the directory ../up'), ['files__list_directory({"path":"../up"})']);
  t.same(called('read (C:\\notes.md)'), ['files__read_text_file({"path":"C:\\\\notes.md"})']);
  t.same(
    called('Read the text file "operators.md".'),
    ['files__read_text_file({"path":"operators.md"})'],
    'a full stop is not a path',
  );
  t.same(called('read "docs/my notes.md", head 3'), ['files__read_text_file({"path":"docs/my notes.md","head":3})']);
  t.same(called('list the files in the folder docs'), ['files__list_directory({"path":"docs"})']);
  t.same(called('write "hello world" to "x.txt"'), ['files__write_file({"path":"x.txt","content":"hello world"})']);
  t.same(
    called('write "hello world" to "my notes"'),
    ['files__write_file({"path":"hello world","content":"my notes"})'],
    'in order, if none looks like a path',
  );
  t.same(called('search in docs for "*.md"'), ['files__search_files({"path":"docs","pattern":"*.md"})']);
  t.same(called('move ./a to ./b'), ['files__move_file({"source":"./a","destination":"./b"})']);
  t.same(called('read multiple files: a.txt, b.txt'), ['files__read_multiple_files({"paths":["a.txt","b.txt"]})']);
  t.same(called('open https://example.com/a?b=c!', [tool('open', 'Opens it', { url: text }, ['url'])]), [
    'open({"url":"https://example.com/a?b=c"})',
  ]);
  t.same(
    called('echo a.txt', [tool('echo', 'Says it', { word: text }, ['word'])]),
    ['echo({"word":"a.txt"})'],
    'a path is used if there is no text',
  );
});

t.test('assigns numbers by name; a required number takes the next one', async (t) => {
  t.same(called('roll 3 dice with 20 sides'), ['dice({"dice":3,"sides":20})']);
  t.same(called('dice with sides: 6'), ['dice({"sides":6})']);
  t.same(called('dice with 6.0 sides'), ['dice({"sides":6})']);
  t.same(called('spin 3', [tool('spin', 'Spins', { a: { type: 'number' } })]), ['spin({})'], 'a stop word is not a label');
  t.same(called('dice, 7'), ['dice({"dice":7})']);
  t.same(called('dice and 7'), ['dice({})']);
  const add = [tool('sum', 'Adds', { a: { type: 'number' }, b: { type: 'number' } }, ['a', 'b'])];
  t.same(called('the sum of 1.5 and -2', add), ['sum({"a":1.5,"b":-2})']);
  t.same(called('the sum of 1', add), []);
  const all = [tool('sum', 'Adds', { terms: { type: 'array', items: { type: 'number' } } }, ['terms'])];
  t.same(called('the sum of 1 2 3', all), ['sum({"terms":[1,2,3]})']);
  t.same(called('dice with 2.5 sides'), ['dice({})'], 'not an integer');
});

t.test('fills in choices, constants and nullable properties', async (t) => {
  const schema = {
    colour: { enum: ['red', 'Green'] },
    kind: { const: 'plain' },
    label: { type: ['null', 'string'] },
    size: { anyOf: [{ type: 'null' }, { type: 'integer' }] },
    deep: { type: 'object' },
  };
  t.same(called('paint it green', [tool('paint', 'Paints', schema, ['colour', 'kind'])]), [
    'paint({"colour":"Green","kind":"plain"})',
  ]);
  t.same(called('paint "it", size 3', [tool('paint', 'Paints', schema)]), ['paint({"label":"it","size":3})']);
  t.same(called('paint', [tool('paint', 'Paints', schema, ['deep'])]), []);
});

t.test('finds time zones by name or city, the longest name first', async (t) => {
  t.same(called('what time is it in New York?'), ['clock({"timeZone":"America/New_York"})']);
  t.same(called('the time in Europe/Paris'), ['clock({"timeZone":"Europe/Paris"})']);
  t.same(called('the time in utc'), ['clock({"timeZone":"UTC"})']);
  t.same(called('the time in "Atlantis"'), ['clock({})']);
});

t.test('obeys tool_choice', async (t) => {
  const prompt = 'What time is it?';
  t.same(called(prompt, ALL, 'none'), []);
  t.same(called(prompt, ALL, 'auto'), ['clock({})']);
  t.same(called('Hello', [CLOCK, DICE], 'required'), ['clock({})'], 'any tool');
  t.same(called(prompt, ALL, { type: 'function', function: { name: 'dice' } }), ['dice({})'], 'that tool');
  t.same(
    called(prompt, ALL, { type: 'function', function: { name: 'files__list_directory' } }),
    [],
    'not without its required arguments',
  );
  const allowed = (mode: string) => ({
    type: 'allowed_tools',
    allowed_tools: { mode, tools: [{ type: 'function', function: { name: 'dice' } }] },
  });
  t.same(called(prompt, ALL, allowed('auto')), []);
  t.same(called(prompt, ALL, allowed('required')), ['dice({})']);
  t.same(called(prompt, ALL, { type: 'allowed_tools', allowed_tools: {} }), []);
  t.same(called(prompt, ALL, { type: 'custom', custom: { name: 'x' } }), ['clock({})']);
});

t.test('searches only the beginning of a long prompt', async (t) => {
  t.same(called(`${'x '.repeat(1000)} what time is it?`), []);
});
