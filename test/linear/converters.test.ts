/**
 * The work of every converter, reader and renderer grows with its input and not faster: twice the
 * input takes at most 2.6 times as long. A new one must be added to `CASES`, or to `LEFT_OUT`.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Message, SessionStore } from '@plugboard/kernel';
import { OPEN, openToolCalls, type Target, type TurnRecord, withSummary } from '@plugboard/kernel/contracts';
import t from 'tap';
import ts from 'typescript';
import { refuseExtras, withOwnExtras, withoutExtras } from '../../plugins/agent-runtime/src/engine/messages/extra.js';
import { withoutEarlierMedia } from '../../plugins/agent-runtime/src/engine/messages/media.js';
import { assertMessages } from '../../plugins/agent-runtime/src/engine/messages/message-shape.js';
import { newestTurns, nextStep, trimConversation } from '../../plugins/agent-runtime/src/engine/messages/newest-turns.js';
import { prefixOf } from '../../plugins/agent-runtime/src/engine/messages/prefix.js';
import { resultsInOrder } from '../../plugins/agent-runtime/src/engine/messages/results-in-order.js';
import { dueSummary, summaryOfAll } from '../../plugins/agent-runtime/src/sessions/history/due-summary.js';
import { historyView } from '../../plugins/agent-runtime/src/sessions/history/history-view.js';
import {
  assertPairedToolCalls,
  hasNewMessages,
  messagesToAppend,
  newMessages,
} from '../../plugins/agent-runtime/src/sessions/history/session-input.js';
import { summaryRequest } from '../../plugins/agent-runtime/src/sessions/history/summary-request.js';
import type { ApprovalRecord } from '../../plugins/agent-runtime/src/sessions/pending/approval.js';
import { ClientCalls } from '../../plugins/agent-runtime/src/sessions/pending/client-calls.js';
import { countDecisions, decisionsIn } from '../../plugins/agent-runtime/src/sessions/pending/decision-lines.js';
import { inPlaceOfResults, withLead, withResults } from '../../plugins/agent-runtime/src/sessions/pending/results.js';
import { NOTHING_OPEN } from '../../plugins/agent-runtime/src/sessions/pending/settle-open-calls.js';
import { promptOf } from '../../plugins/model-ai-sdk/src/request/prompt.js';
import { resolveDialect } from '../../plugins/model-openai/src/provider/resolve-dialect.js';
import { wireMessages } from '../../plugins/model-openai/src/request/conversation.js';
import { alternate, userFirst } from '../../plugins/model-openai/src/request/roles.js';
import { messagesOf } from '../../plugins/open-responses/src/items/input-messages.js';
import { mergeTools } from '../../plugins/open-responses/src/request/client-tools.js';
import { listedItems, turnInput } from '../../plugins/open-responses/src/request/input-items.js';
import { parseCompaction, parseRequest } from '../../plugins/open-responses/src/request/parse-request.js';
import type { RequestTool } from '../../plugins/open-responses/src/request/request.js';
import { addedTo, joinCarried } from '../../plugins/open-responses/src/service/carried.js';
import { visibleMessages } from '../../plugins/open-responses/src/service/visible-messages.js';
import { OpenApiDocument } from '../../plugins/tool-http/src/document/document.js';
import { operationsOf } from '../../plugins/tool-http/src/document/operations.js';
import { select } from '../../plugins/tool-http/src/document/select.js';
import { argumentNames } from '../../plugins/tool-http/src/operation/argument-names.js';
import { parametersOf } from '../../plugins/tool-http/src/operation/parameters.js';
import { formText } from '../../plugins/tool-http/src/request/form.js';
import { cookiePairs, headerText, pathText, queryText } from '../../plugins/tool-http/src/request/styles.js';
import { Aliases } from '../../plugins/tool-http/src/schema/aliases.js';
import { SchemaConverter } from '../../plugins/tool-http/src/schema/convert-schema.js';
import { merge } from '../../plugins/tool-http/src/schema/merge.js';
import { conversationOf as chatConversationOf } from '../../plugins/transport-chat-completions/src/request/messages.js';
import { parseRequest as parseChat } from '../../plugins/transport-chat-completions/src/request/validate.js';
import { itemsOf as itemsOfTurn } from '../../plugins/transport-conversations/src/items/turn-to-items.js';
import { turnEntry } from '../../plugins/transport-conversations/src/turns/turn-entry.js';
import { conversationOf } from '../../plugins/transport-messages/src/request/conversation.js';
import { Ignored } from '../../plugins/transport-messages/src/request/ignored.js';
import { toolChangesIn } from '../../plugins/transport-messages/src/request/tools.js';
import { messagesOf as telegramMessages } from '../../plugins/transport-telegram/src/formatting/messages-of.js';
import { estimateTokens } from '../../plugins/turn-routes/src/estimate-tokens.js';
import { requestFingerprint } from '../../plugins/turn-routes/src/fingerprints.js';
import { LENGTH } from '../support/rounds.js';
import { faultOfDoubling } from './doubling.js';
import { blocksOf, CONVERSATIONS, itemsOf, list, TEXTS } from './shapes.js';

/** Messages, or steps, of the smaller size. */
const SIZE = 2_000;
/** The shapes of `npm test`; the long run has all. */
const SHORT = ['wide', 'deep', 'parts of users', 'prompts alone'];
const SHAPES = Object.entries(CONVERSATIONS).filter(([name]) => LENGTH !== 'short' || SHORT.includes(name));

const BUDGET = { tokens: 1e9, messages: 1e9 };
const media = { takesUrl: () => true, fetch: async () => ({ mediaType: 'image/png', data: '' }), omitsFiles: true };
const dialect = (provider: string) => resolveDialect({ provider, body: {}, omit: [] } as never, 'localhost', 'm');
const GEMINI = dialect('gemini');
const PLAIN = dialect('none');
const ignored = new Ignored();
const target = { nameAtModel: (_: string, name: string) => name, input: ['text', 'image'] } as unknown as Target;
const view = { conversation: `conv_${'a'.repeat(40)}`, toolOf: () => undefined };
const rules = {
  param: 'input',
  maxItems: 1e9,
  textOnly: undefined,
  purpose: 'turn',
  nameAtModel: (_: string, tool: string) => tool,
  readSummary: (text: string) => text,
  openReasoning: () => undefined,
} as const;
/** A store that has messages for every call. */
const pending = {
  pendingToolCalls: {
    save: async () => {},
    find: async (_: object, keys: readonly string[]) => new Map(keys.map((key) => [key, 1])),
    load: async () => CONVERSATIONS.deep?.(1),
  },
} as unknown as SessionStore;

function recordOf(messages: readonly Message[]): TurnRecord {
  const calls = messages.flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []) : []));
  return {
    queued: 0,
    duration: 0,
    reason: 'stop',
    steps: messages.map(() => ({ connection: 'c', start: 0, reasoning: 'so' })),
    calls: calls.map(({ id }) => ({ id, name: 'f', step: 1, start: 0, state: 'failed' as const })),
    decisions: calls.map(({ id }) => ({ approval: id, call: id, approve: true, by: 'person' as const })),
  };
}

/** A tool of each request: half of them are sent again. */
function toolsOf(messages: readonly Message[]): readonly (readonly RequestTool[])[] {
  return messages.map((_, at) => [{ type: 'function', name: `f${at >> 1}` }]);
}

/** What is given messages of every shape. */
const CASES: Readonly<Record<string, (messages: Message[]) => unknown>> = {
  openToolCalls,
  withSummary: (messages) => withSummary('so', messages),
  inPlaceOfResults: (messages) => inPlaceOfResults(messages, NOTHING_OPEN),
  resultsInOrder,
  withResults: (messages) => withResults(messages, messages, [], new Set()),
  withLead: (messages) => withLead(messages, messages),
  'ClientCalls.expand': (messages) => new ClientCalls(pending, 'a', OPEN).expand(messages, () => {}),
  withOwnExtras: (messages) => withOwnExtras(messages, 'c', []),
  refuseExtras,
  withoutExtras,
  historyView: (messages) => historyView({ messages }, [], 'truncate', BUDGET),
  newestTurns: (messages) => newestTurns(messages, 0, [], BUDGET),
  nextStep: (messages) => nextStep(messages, Math.floor(messages.length / 2)),
  trimConversation: (messages) => trimConversation(messages, 1e9),
  withoutEarlierMedia,
  assertMessages,
  prefixOf: (messages) => prefixOf(messages, []),
  newMessages: (messages) => newMessages(messages, messages),
  hasNewMessages: (messages) => hasNewMessages(messages, messages),
  messagesToAppend: (messages) => messagesToAppend([], messages),
  assertPairedToolCalls: (messages) => assertPairedToolCalls(messages),
  dueSummary: (messages) => dueSummary({ messages }, [], 'summarize', BUDGET),
  summaryRequest: (messages) => summaryRequest(messages, summaryOfAll(messages), 1e9),
  promptOf: (messages) => promptOf(messages, 'of', media),
  alternating: (messages) => promptOf(messages, 'of', media, { alternates: true, callIds: 'alnum9' }),
  wireMessages: (messages) => [wireMessages(messages, PLAIN, 'of'), wireMessages(messages, GEMINI, 'of')],
  alternate: (messages) => alternate(messages as never),
  userFirst: (messages) => userFirst(messages as never),
  'messagesOf of items': (messages) => messagesOf(itemsOf(messages), rules),
  listedItems: (messages) => listedItems(itemsOf(messages) as never, 'resp_1'),
  'parseRequest of Responses': (messages) => parseRequest({ model: 'm', input: itemsOf(messages) }),
  parseCompaction: (messages) => parseCompaction({ model: 'm', input: itemsOf(messages) }),
  turnInput: (messages) => turnInput({ messages, approvals: [] }),
  mergeTools: (messages) => mergeTools(toolsOf(messages)),
  joinCarried: (messages) =>
    joinCarried(
      'conv_1',
      new Map(toolsOf(messages).map((tools, at) => [`carried_${at}`, { system: messages.slice(at, at + 1), tools }])),
      { system: [], tools: [] },
    ),
  addedTo: (messages) =>
    addedTo('conv_1', { system: messages, tools: [], stored: { conversation: 'conv_1', names: [], items: new Set(messages) } }),
  visibleMessages: (messages) => visibleMessages(messages, { toolVisibility: 'names', toolOf: () => undefined }),
  'conversationOf of chat completions': (messages) => chatConversationOf(messages as never),
  'parseRequest of chat completions': (messages) => parseChat({ model: 'm', messages }),
  'itemsOf a turn': (messages) =>
    itemsOfTurn({ turn: 1, messages, record: recordOf(messages) }, { ...view, toolVisibility: 'full' }),
  turnEntry: (messages) => turnEntry({ turn: 1, messages, record: recordOf(messages) }, { ...view, toolVisibility: 'full' }),
  'conversationOf of Messages': (messages) =>
    conversationOf(undefined, blocksOf(messages), { target, hasSession: true, ignored }),
  toolChangesIn: (messages) => toolChangesIn(blocksOf(messages)),
  estimateTokens: (messages) => estimateTokens(messages, []),
  requestFingerprint: (messages) => requestFingerprint(messages, undefined, OPEN),
};

const approvals = list(500, (at) => ({ id: `mcpr_${at}`, code: `CODE${at}`, state: 'waiting' })) as unknown as ApprovalRecord[];

/** What is given texts of every shape. */
const TEXT_CASES: Readonly<Record<string, (text: string) => unknown>> = {
  decisionsIn: (text) => decisionsIn(text, approvals),
  countDecisions,
  // A third: it does more with each character, and the time in all is the same for every converter.
  'messagesOf of Telegram': (text) => telegramMessages(text.slice(0, text.length / 3)),
};

/** A document with so many operations, and as many parameters for all. */
function openApiOf(count: number): OpenApiDocument {
  const parameters = list(count, (at) => ({ name: `p ${at >> 1}`, in: at % 2 ? 'query' : 'header' }));
  const paths = list(count, (at) => [
    `/a${at >> 1}/{id}${at}`,
    { parameters, get: { operationId: `a ${at >> 1}`, tags: [`t${at}`] } },
  ]);
  return new OpenApiDocument({ openapi: '3.1.0', paths: Object.fromEntries(paths) });
}

/** A value of an argument. */
const valuesOf = (count: number) => list(count, (at) => ({ a: at, b: [at, { c: 'text' }] }));
const STYLE = { name: 'p', style: 'deepObject', explode: true, allowReserved: true, mediaType: undefined };
const skip = () => {};

/** What is given so much of something, of one shape. */
const SIZED_CASES: Readonly<Record<string, (count: number) => unknown>> = {
  operationsOf: (count) => operationsOf(openApiOf(count), skip),
  select: (count) => {
    const names = list(count, (at) => `t${at}`);
    return select(operationsOf(openApiOf(count), skip), { operations: undefined, tags: names });
  },
  parametersOf: (count) => {
    const document = openApiOf(count);
    const [operation] = operationsOf(document, skip);
    return operation && parametersOf(document, operation, new Set());
  },
  argumentNames: (count) =>
    argumentNames(
      list(count, (at) => ({ name: `${'query_'.repeat(at % 3)}${at >> 2}`, in: 'query' })),
      new Aliases(),
    ),
  merge: (count) => merge(list(count, (at) => ({ type: 'object', properties: { [`p${at}`]: {}, p: {} }, required: ['p'] }))),
  'SchemaConverter.convert': (count) => {
    const properties = Object.fromEntries(list(count, (at) => [`p ${at}`, { $ref: '#/x' }]));
    const document = new OpenApiDocument({ x: { allOf: list(9, () => ({ type: 'string' })) } });
    const schema = { type: 'object', properties, allOf: list(count, (at) => ({ properties: { [at]: {} } })) };
    return new SchemaConverter(document, new Aliases()).convert(schema);
  },
  queryText: (count) => queryText(STYLE, valuesOf(count)),
  pathText: (count) => pathText(STYLE, valuesOf(count)),
  headerText: (count) => headerText(STYLE, valuesOf(count)),
  cookiePairs: (count) => cookiePairs(STYLE, valuesOf(count)),
  formText: (count) => formText(Object.fromEntries(valuesOf(count).entries()), {}),
};

/** Exported functions that take lists, and need no case, with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  callRemovals: 'it looks at each call once',
  approvalNotice: 'its calls are limited, and each is cut',
  deniedNotice: 'its calls are limited, and each is cut',
  keptNotice: 'joins the ids of calls, which are limited',
  settleOpenCalls: 'newMessages and inPlaceOfResults; its calls are limited',
  messagesAtEnd: 'reads each of the last turns once',
  anyWaits: 'one query with the ids of calls',
  makeTurn: 'copies one list',
  budgetFor: 'sums up sizes',
  startOfTurn: 'one search; its callers are cases',
  refuseMedia: 'the loop of withoutEarlierMedia',
  withoutRefusedMedia: 'the loop of withoutEarlierMedia',
  withFetchLimit: 'one pass over the parts',
  bytesOf: 'JSON, kept with the message',
  tokensOf: 'JSON, kept with the message',
  usableSummary: 'looks at two messages',
  startsWithToolResults: 'looks at one message',
  summaryOfAll: 'looks at the length',
  modelFingerprint: 'of the configuration',
  answeredBy: 'one item',
  nameItems: 'one message of an error',
  namingItems: 'one message of an error',
  isSummary: 'one item',
  userContent: 'part of messagesOf',
  assistantContent: 'part of messagesOf',
  onlyText: 'part of messagesOf, and of conversationOf',
  toolOutput: 'part of messagesOf',
  clientToolsOf: 'at most 512 tools; looks each up by name',
  parametersOf: 'fields of one object',
  parseTools: 'at most 512 tools',
  resolveReferences: 'looks each reference up by its id, and counts it (S-50)',
  isCodex: 'headers',
  assertText: 'one pass over parts',
  parseSession: 'fields and headers',
  effectiveSources: 'three sources',
  messagesOf: 'a case, under a longer name',
  someMessagesOf: 'messagesOf',
  builtInTool: 'one tool',
  blocksOf: 'part of conversationOf',
  asObject: 'one value',
  asList: 'one value',
  asText: 'one value',
  asFlag: 'one value',
  asNumber: 'one value',
  asInteger: 'one value',
  asWord: 'one value',
  headOf: 'fields of one object',
  ignoredParamsHeader: 'at most 32 names',
  joined: 'joins constant parts',
  fieldsOf: 'one value',
  isFields: 'one value',
  listOf: 'one value',
  textOf: 'one value',
  describe: 'one text, cut',
};

const FOLDERS = [
  'kernel/src/contracts/messages',
  'plugins/agent-runtime/src/engine/messages',
  'plugins/agent-runtime/src/sessions/{conversation,history,pending}',
  'plugins/model-ai-sdk/src/request',
  'plugins/model-openai/src/request',
  'plugins/open-responses/src/{items,request,service}',
  'plugins/tool-http/src/{document,schema,operation,request}',
  'plugins/transport-chat-completions/src/request',
  'plugins/transport-conversations/src/{items,turns}',
  'plugins/transport-messages/src/request',
  'plugins/turn-routes/src',
];
/** The types of parameters that may hold many things. */
const MANY = /\[\]|Iterable|unknown|\bConversation\b|ConversationTurn|InputMessages|WatchedTurn/;

/** The exported functions of the folders of converters that are given lists. */
function converters(): readonly string[] {
  const root = join(import.meta.dirname, '../..');
  return FOLDERS.flatMap((folder) => globSync(`${folder}/*.ts`, { cwd: root })).flatMap((file) => {
    const source = ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.Latest, true);
    return source.statements.flatMap((node) => {
      if (!ts.isFunctionDeclaration(node) || !node.name) return [];
      const isExported = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
      return isExported && node.parameters.some(({ type }) => MANY.test(type?.getText(source) ?? '')) ? [node.name.text] : [];
    });
  });
}

t.test('work that is not linear is found', async (t) => {
  const quadratic = (n: number) => {
    const all = list(4 * n, (at) => at);
    return () => all.filter((one) => all.includes(-one - 1));
  };
  t.match(await faultOfDoubling(quadratic, SIZE, 3), /ms for 2000, .* ms for 4000/);
});

t.test('S-64 every converter has a case, or a reason to have none', async (t) => {
  const found = new Set(converters());
  t.ok(found.size > 50, `${found.size} converters`);
  const covered = new Set(
    [...Object.keys(CASES), ...Object.keys(SIZED_CASES), ...Object.keys(TEXT_CASES)].map((name) => name.replace(/ .*/, '')),
  );
  t.strictSame(
    [...found].filter((name) => !covered.has(name) && LEFT_OUT[name] === undefined),
    [],
    'add a case, or a reason',
  );
  t.strictSame(
    Object.keys(LEFT_OUT).filter((name) => !found.has(name)),
    [],
    'reasons for what is no longer there',
  );
});

t.test('S-64 twice the conversation takes twice the time', async (t) => {
  const faults: string[] = [];
  for (const [name, run] of Object.entries(CASES)) {
    for (const [shape, make] of SHAPES) {
      const fault = await faultOfDoubling((n) => {
        const messages = make(n);
        return () => run(messages);
      }, SIZE);
      if (fault !== undefined) faults.push(`${name}, ${shape}: ${fault}`);
    }
  }
  t.strictSame(faults, []);
});

t.test('S-64 twice the document, or the argument, takes twice the time', async (t) => {
  const faults: string[] = [];
  for (const [name, run] of Object.entries(SIZED_CASES)) {
    const fault = await faultOfDoubling((n) => () => run(n), SIZE);
    if (fault !== undefined) faults.push(`${name}: ${fault}`);
  }
  t.strictSame(faults, []);
});

t.test('S-65 twice the text takes twice the time', async (t) => {
  const faults: string[] = [];
  for (const [name, run] of Object.entries(TEXT_CASES)) {
    for (const [shape, make] of Object.entries(TEXTS)) {
      const fault = await faultOfDoubling((n) => {
        const text = make(n);
        return () => run(text);
      }, 50_000);
      if (fault !== undefined) faults.push(`${name}, ${shape}: ${fault}`);
    }
  }
  t.strictSame(faults, []);
});
