import type { ToolDeclaration } from '@plugboard/kernel/contracts';

const text = { type: 'string' };
const integer = { type: 'integer' };
const point = { type: 'array', items: integer, minItems: 2, maxItems: 2 };

/**
 * The tools of the protocol that the client runs and that have no schema in a request, by how their
 * type begins. A model of another provider knows them by these declarations.
 */
const BUILT_IN: readonly {
  readonly type: RegExp;
  readonly name: string;
  readonly description: string;
  readonly schema: object;
}[] = [
  {
    type: /^bash_\d+$/,
    name: 'bash',
    description: 'Runs a command in a bash shell that keeps its state. With `restart` the shell is started anew.',
    schema: { type: 'object', properties: { command: text, restart: { type: 'boolean' } } },
  },
  {
    type: /^text_editor_\d+$/,
    name: 'str_replace_based_edit_tool',
    description:
      'Views and edits files: `view` a file or a range of its lines, or a directory; `create` a file; `str_replace` a text that occurs once; `insert` a text after a line.',
    schema: {
      type: 'object',
      properties: {
        command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'undo_edit'] },
        path: text,
        view_range: point,
        file_text: text,
        old_str: text,
        new_str: text,
        insert_line: integer,
        insert_text: text,
      },
      required: ['command', 'path'],
    },
  },
  {
    type: /^memory_\d+$/,
    name: 'memory',
    description: 'Reads and writes the files of the memory under /memories.',
    schema: {
      type: 'object',
      properties: {
        command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
        path: text,
        view_range: point,
        file_text: text,
        old_str: text,
        new_str: text,
        insert_line: integer,
        insert_text: text,
        old_path: text,
        new_path: text,
      },
      required: ['command'],
    },
  },
  {
    type: /^computer_\d+$/,
    name: 'computer',
    description: 'Uses a screen, a mouse and a keyboard: takes a screenshot, moves, clicks, types.',
    schema: {
      type: 'object',
      properties: {
        action: text,
        coordinate: point,
        start_coordinate: point,
        text,
        duration: { type: 'number' },
        scroll_direction: { type: 'string', enum: ['up', 'down', 'left', 'right'] },
        scroll_amount: integer,
        region: { type: 'array', items: integer, minItems: 4, maxItems: 4 },
      },
      required: ['action'],
    },
  },
];

/**
 * The declaration of a tool of the protocol that the client runs; undefined for one that only a
 * server of the provider could run, and for types that this version does not know.
 *
 * @param name the name in the request: earlier versions of a tool have another one.
 */
export function builtInTool(type: string, name: unknown): ToolDeclaration | undefined {
  const known = BUILT_IN.find((tool) => tool.type.test(type));
  if (!known) return undefined;
  const isName = typeof name === 'string' && /^[a-zA-Z0-9_-]{1,128}$/.test(name);
  return { name: isName ? name : known.name, description: known.description, inputSchema: { ...known.schema } };
}
