import type { Extensions } from '@plugboard/kernel';
import type { AgentCard, AgentCards, AgentRuntime } from '@plugboard/kernel/contracts';
import { invalidRequest, type ProtocolError, protocolRoute, wrongType } from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';

const AGENT = '/v1/agents/:name';
const TOOL = `${AGENT}/tools/:entry/:tool`;

/** Characters of a tool's description that the list of an agent's tools shows. */
const MAX_SUMMARY = 200;

type CardTool = AgentCard['tools'][number];

/**
 * `/v1/agents/{name}`. Lists of tools are short, and each tool has its own address: the schemas of
 * an agent can be of any size. The runtime decides who sees what; another project's agent is as
 * unknown as one that does not exist.
 */
export class AgentRoutes {
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(runtimes: Extensions<AgentRuntime>) {
    this.#runtimes = runtimes;
  }

  get routes(): readonly HttpRoute[] {
    const read = { method: 'GET', access: ['models:read'], body: 'none', startsWork: false } as const;
    // The runtime requires the scope `admin`, which callers of an open server do not need.
    const run = { method: 'POST', access: [], body: 'json', startsWork: true } as const;
    return [
      protocolRoute({ ...read, path: AGENT, handle: (request) => this.#retrieve(request) }),
      protocolRoute({ ...read, path: TOOL, handle: (request) => this.#tool(request) }),
      protocolRoute({ ...run, path: TOOL, handle: (request) => this.#run(request) }),
    ];
  }

  /** Absent if the runtime tells nothing. */
  get #cards(): AgentCards | undefined {
    return this.#runtimes.one().cards;
  }

  async #retrieve(request: HttpRequest): Promise<HttpReply> {
    return { status: 200, body: agentBody(await this.#card(request)) };
  }

  async #tool(request: HttpRequest): Promise<HttpReply> {
    const { entry, tool } = request.params;
    const { tools } = await this.#card(request);
    const found = tools.find((one) => one.entry === entry && one.name === tool);
    if (!found) throw unknownTool(request);
    return {
      status: 200,
      body: {
        ...toolBody(found),
        description: found.details?.description ?? null,
        input_schema: found.details?.inputSchema ?? null,
      },
    };
  }

  async #run(request: HttpRequest): Promise<HttpReply> {
    const { params, principal, requestId, signal } = request;
    const { name = '', entry = '', tool = '' } = params;
    const { arguments: input = {}, approve = false } = request.body as Readonly<Record<string, unknown>>;
    if (typeof input !== 'object' || input === null || Array.isArray(input)) throw wrongType('arguments', 'an object', input);
    if (typeof approve !== 'boolean') throw wrongType('approve', 'a boolean', approve);
    await this.#card(request);
    const run = { agent: name, entry, tool, arguments: JSON.stringify(input), isApproved: approve, requestId, signal };
    const result = await this.#cards?.runTool(run, principal);
    if (!result) throw unknownTool(request);
    const { content, images, isError, milliseconds } = result;
    return { status: 200, body: { object: 'agent.tool_result', content, images, is_error: isError, milliseconds } };
  }

  /** @throws ProtocolError 404 */
  async #card({ params: { name = '' }, principal }: HttpRequest): Promise<AgentCard> {
    const card = await this.#cards?.card(name, principal);
    if (card) return card;
    throw invalidRequest(`The agent '${name}' does not exist`, { status: 404, param: 'name', code: 'agent_not_found' });
  }
}

function agentBody({ name, kind, description, connections, input, toolVisibility, tools, settings }: AgentCard): object {
  return {
    id: name,
    object: 'agent',
    kind,
    description: description ?? null,
    models: connections,
    input,
    tool_visibility: toolVisibility,
    tools: tools.map(toolBody),
    ...(settings && { settings: { system: settings.system ?? null, params: settings.params } }),
  };
}

function toolBody({ entry, name, details }: CardTool): object {
  const { description = '', effect, needsApproval } = details ?? {};
  return {
    entry,
    name,
    ...(details && { summary: summaryOf(description), effect, needs_approval: needsApproval }),
  };
}

/** The start of a description, on one line. */
function summaryOf(description: string): string {
  const line = description.slice(0, MAX_SUMMARY).toWellFormed().replace(/\s+/g, ' ').trim();
  return description.length > MAX_SUMMARY ? `${line}…` : line;
}

function unknownTool({ params: { name, entry, tool } }: HttpRequest): ProtocolError {
  const message = `The agent '${name}' has no tool '${entry}/${tool}'`;
  return invalidRequest(message, { status: 404, param: 'tool', code: 'tool_not_found' });
}
