import { type AgentEvent, AgentRuntimes, type Clock, type Principal } from '@plugboard/kernel';
import { type AgentRuntime, OPEN, type TurnEvents, type TurnRequest } from '@plugboard/kernel/contracts';
import { type ChatRequest, ModelServer, type ReceivedRequest, type Script, startServer } from '@plugboard/testing';
import type { Test } from 'tap';

/** An entry of the configuration. */
type Entry = Readonly<Record<string, unknown>>;

/** What an agent's model answers to its nth request, from 1. */
export type Play = (body: ChatRequest, nth: number, request: ReceivedRequest) => Script | Promise<Script>;

interface FamilyOptions {
  /** By agent. */
  readonly agents: Readonly<Record<string, object>>;
  readonly tools: Readonly<Record<string, Entry>>;
  /** By agent. */
  readonly plays: Readonly<Record<string, Play>>;
  /** What else the file has. */
  readonly file?: object;
  readonly clock?: Clock;
}

/** A server whose agents each have a model of their own, which a test plays. */
export async function family(t: Test, { agents, tools, plays, file = {}, clock }: FamilyOptions) {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const asked: Record<string, ChatRequest[]> = {};
  model.respond((request) => {
    const { body } = request;
    const name = String(body.model);
    const requests = asked[name] ?? [];
    asked[name] = requests;
    const nth = requests.push(body);
    return plays[name]?.(body, nth, request) ?? { text: 'ok' };
  });
  const names = Object.keys(agents);
  const server = await startServer(
    {
      transports: { http: { port: 0 }, 'chat-completions': {} },
      models: Object.fromEntries(names.map((name) => [`of-${name}`, { use: 'openai', baseUrl: model.url, model: name }])),
      tools,
      agents: Object.fromEntries(names.map((name) => [name, { model: `of-${name}`, ...agents[name] }])),
      ...file,
    },
    clock ? { clock } : {},
  );
  t.teardown(() => server.stop());
  const runtime = server.server.extensions(AgentRuntimes).one();
  return {
    server,
    model,
    runtime,
    /** The requests of an agent's model, in order. */
    asked: (agent: string) => asked[agent] ?? [],
    run: (agent: string, more: Partial<TurnRequest> = {}) => run(runtime, agent, more),
  };
}

function run(runtime: AgentRuntime, agent: string, more: Partial<TurnRequest>): TurnEvents {
  const principal: Principal = more.principal ?? OPEN;
  const resolution = runtime.resolve(agent, principal);
  if (resolution.kind !== 'target') throw new Error(`${agent} is ${resolution.kind}`);
  return runtime.run({
    target: resolution.target,
    principal,
    messages: [{ role: 'user', content: 'Hello' }],
    clientTools: [],
    params: {},
    incremental: true,
    requestId: 'req_1',
    metadata: {},
    signal: new AbortController().signal,
    ...more,
  } as TurnRequest);
}

export async function collect(events: AsyncIterable<readonly AgentEvent[]>): Promise<readonly AgentEvent[]> {
  const all: AgentEvent[] = [];
  for await (const batch of events) all.push(...batch);
  return all;
}

/** The results of the turn's own calls, in the order in which they came. */
export function resultsOf(events: readonly AgentEvent[]): readonly { readonly content: string; readonly isError: boolean }[] {
  return events.flatMap((event) => (event.type === 'tool-result' ? [{ content: event.content, isError: event.isError }] : []));
}

/** The names of the tools that a model was shown. */
export function toolNames(body: ChatRequest | undefined): readonly string[] {
  const tools = (body?.tools ?? []) as readonly { readonly function: { readonly name: string } }[];
  return tools.map((tool) => tool.function.name);
}

/** Calls of tools that ask agents. */
export function calls(...wanted: readonly [tool: string, input: string][]): Script {
  return { toolCalls: wanted.map(([name, input]) => ({ name, arguments: { input } })) };
}

/** An entry of a tool that asks an agent. */
export function asking(agent: string, more: Entry = {}): Entry {
  return { use: 'agent', agent, description: `Asks ${agent}.`, ...more };
}
