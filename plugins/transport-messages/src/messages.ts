import type { IdSource, PluginState } from '@plugboard/kernel';
import type { AgentRuntime, Target } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';
import { type Dialect, type DialectTurn, type ExtrasSeal, ignoredParamsHeader, SealedExtras } from '@plugboard/turn-routes';
import type { Visibility } from './answer/blocks.js';
import { messageForm } from './answer/message-form.js';
import type { MessagesConfig } from './config.js';
import { formatError, requestIdHeader } from './errors/format-error.js';
import { claimError, invalidField } from './errors/messages-error.js';
import { turnFailureError } from './errors/turn-failure.js';
import { conversationOf, type RequestMessages } from './request/conversation.js';
import { Ignored } from './request/ignored.js';
import { parametersOf, thinkingOf } from './request/parameters.js';
import { headOf, type RequestHead } from './request/request.js';
import { sessionOf } from './request/session.js';
import { targetOf } from './request/target.js';
import { toolsOf } from './request/tools.js';

export interface MessagesDependencies {
  readonly config: MessagesConfig;
  readonly ids: IdSource;
  readonly state: PluginState;
}

/** The dialect of `POST /v1/messages`. */
export class Messages implements Dialect {
  readonly path = '/v1/messages';
  readonly tokenHeader = 'x-api-key';
  readonly formatError = formatError;
  readonly invalid = invalidField;
  readonly errorOf = turnFailureError;
  readonly claimError = claimError;

  readonly #config: MessagesConfig;
  readonly #ids: IdSource;
  readonly #extras: SealedExtras;

  constructor({ config, ids, state }: MessagesDependencies) {
    this.#config = config;
    this.#ids = ids;
    this.#extras = new SealedExtras(state);
  }

  /** @throws MessagesError for an invalid request. */
  async read(request: HttpRequest, runtime: AgentRuntime): Promise<DialectTurn> {
    const head = headOf(request.body);
    const session = sessionOf(head.user, request, this.#config);
    const seal = session === undefined ? await this.#extras.for(request.principal.project) : undefined;
    const target = targetOf(runtime, head.model, request.principal);
    const ignored = new Ignored();
    const { fields, user } = head;
    const conversation = conversationOf(fields.system, fields.messages, {
      target,
      hasSession: session !== undefined,
      open: seal?.open,
      ignored,
    });
    const tools = toolsOf(fields, target, ignored);
    const params = { ...parametersOf(fields, target, ignored), ...tools.params };
    const visibility = visibilityOf(request, head, { target, seal }, ignored);
    const { messages, paths } = conversation;
    return {
      turn: {
        target,
        messages,
        hasOwnExtras: true,
        clientTools: tools.declarations,
        params,
        user,
        metadata: user === undefined ? {} : { user_id: user },
      },
      session,
      answer: messageForm({
        head: { id: `msg_${this.#ids.base62(24)}`, model: head.model },
        headers: { ...requestIdHeader(request.requestId), ...ignoredParamsHeader(ignored.names) },
        isStream: head.stream,
        visibility,
        requestId: request.requestId,
        errorOf: (failure) => turnFailureError(failure, session !== undefined, (param) => pathOf(param, paths)),
      }),
    };
  }
}

/** Calls of the agent's own tools are shown to those who say that they know such blocks (CL-23). */
function visibilityOf(
  { headers }: HttpRequest,
  { fields }: RequestHead,
  { target, seal }: { readonly target: Target; readonly seal: ExtrasSeal | undefined },
  ignored: Ignored,
): Visibility {
  const knowsCalls = String(headers['anthropic-beta'] ?? '').includes('mcp-client');
  const thinking = thinkingOf(fields, ignored);
  return {
    thinking: thinking === 'shown',
    seal: thinking === 'off' ? undefined : seal,
    tools: knowsCalls ? target.toolVisibility : 'none',
  };
}

/** The path of a field that the runtime names: `messages[3].content`, `tools[0].function.name`. */
function pathOf(param: string, paths: RequestMessages['paths']): string {
  const path = /^messages\[(\d+)\]/.exec(param);
  if (path) return paths[Number(path[1])] ?? 'messages';
  return param.replace(/\[(\d+)\]/g, '.$1').replace('.function.', '.');
}
