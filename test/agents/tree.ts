import type { ChatRequest, ModelServer } from '@plugboard/testing';
import { TRANSPORTS } from '../support/test-server.js';

/** Four agents: `root` asks `researcher` and `writer`, and `researcher` asks `reader`. */
export const TREE = `${TRANSPORTS}  responses: {}
  websocket: {}
  conversations: {}
  messages: {}
models:
  top: { use: openai, baseUrl: "\${MODEL_URL}", model: top, apiKey: "\${MODEL_KEY}" }
  mid: { use: openai, baseUrl: "\${MODEL_URL}", model: mid, apiKey: "\${MODEL_KEY}" }
  pen: { use: openai, baseUrl: "\${MODEL_URL}", model: pen, apiKey: "\${MODEL_KEY}" }
  low: { use: openai, baseUrl: "\${MODEL_URL}", model: low, apiKey: "\${MODEL_KEY}" }
tools:
  clock: {}
  research: { use: agent, agent: researcher, description: Finds facts. }
  write: { use: agent, agent: writer, description: Writes a draft. }
  read: { use: agent, agent: reader, description: Reads a source. }
agents:
  root: { model: top, system: You report., tools: [research, write] }
  researcher: { model: mid, system: You find facts., tools: [read] }
  writer: { model: pen, system: You write drafts. }
  reader: { model: low, system: You read., tools: [clock] }
`;

/** Tokens of each call of a model: in, out. */
export const TOKENS: Readonly<Record<string, readonly [number, number]>> = {
  top: [1_000, 10],
  mid: [200, 20],
  pen: [30, 3],
  low: [7, 1],
};

/** The calls that each model gets in the turn. */
export const CALLS: Readonly<Record<string, number>> = { top: 2, mid: 2, pen: 1, low: 2 };

/** What the tree uses together, and what one of its models does. */
export function tokensOf(models: readonly string[] = Object.keys(CALLS)): { readonly input: number; readonly output: number } {
  const sum = (at: 0 | 1) => models.reduce((total, model) => total + (CALLS[model] ?? 0) * (TOKENS[model]?.[at] ?? 0), 0);
  return { input: sum(0), output: sum(1) };
}

/** Lets the models answer so that all four agents take part. */
export function playTree(models: ModelServer): void {
  models.respond(({ body }) => {
    const [promptTokens = 0, completionTokens = 0] = TOKENS[body.model] ?? [];
    return { ...answerOf(body), usage: { promptTokens, completionTokens } };
  });
}

function answerOf({ model, messages }: ChatRequest) {
  const isFirst = messages.at(-1)?.role !== 'tool';
  const asks = (name: string, input: string) => ({ name, arguments: { input } });
  switch (model) {
    case 'top':
      return isFirst ? { toolCalls: [asks('research', 'bees'), asks('write', 'bees')] } : { text: ['Report', ' done.'] };
    case 'mid':
      return isFirst ? { text: 'Let me read.', toolCalls: [asks('read', 'the source')] } : { text: ['Two', ' facts.'] };
    case 'pen':
      return { text: 'A draft.' };
    default:
      return isFirst ? { toolCalls: [{ name: 'clock', arguments: { timeZone: 'UTC' } }] } : { text: 'It is noon.' };
  }
}
