import { AgentRuntimes, type Extensions, type PluginContext, type Principal } from '@plugboard/kernel';
import { type AgentRuntime, SCOPES, type Scope } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { HttpError, type HttpReply, type HttpRequest, type HttpRoute, retryAfterHeaders } from '@plugboard/transport-http';
import { BearerProvider } from './provider/bearer-provider.js';
import { type EphemeralRights, EphemeralTokens } from './provider/ephemeral-tokens.js';

/** Bytes of a body. A longer one asks for more than any token needs (S-54). */
const MAX_BODY = 16_384;
/** Names in a list of a body. */
const MAX_NAMES = 64;

/** `POST /v1/ephemeral_tokens`: a token for one use within a minute, with no further rights. */
export class EphemeralTokenRoute implements HttpRoute {
  readonly method = 'POST';
  readonly path = '/v1/ephemeral_tokens';
  /** Any credential. Its own rights bound those of the new one. */
  readonly access = [] as const;
  readonly body = 'json';
  readonly startsWork = true;
  readonly #provider: BearerProvider;
  readonly #tokens: EphemeralTokens;
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(
    @inject(BearerProvider) provider: BearerProvider,
    @inject(EphemeralTokens) tokens: EphemeralTokens,
    @inject(CONTEXT) ctx: PluginContext,
  ) {
    this.#provider = provider;
    this.#tokens = tokens;
    this.#runtimes = ctx.late(AgentRuntimes);
  }

  /** @throws HttpError */
  async handle({ principal, body, rawBody }: HttpRequest): Promise<HttpReply> {
    const parent = this.#provider.digestOf(principal);
    if (parent === undefined) {
      throw new HttpError(403, 'Ephemeral tokens are issued for API tokens only, not for JWTs or other ephemeral tokens.', {
        code: 'api_token_required',
      });
    }
    if (Buffer.byteLength(rawBody) > MAX_BODY) {
      throw new HttpError(413, `The request body is larger than the limit of ${MAX_BODY} bytes.`, { code: 'request_too_large' });
    }
    const rights = rightsOf(body as Readonly<Record<string, unknown>>, principal);
    this.#assertReached(rights.agents ?? [], principal);
    const issued = await this.#tokens.issue(parent, rights);
    if (!issued) {
      throw new HttpError(429, 'Too many unused ephemeral tokens. Use some, or wait until they expire.', {
        code: 'rate_limit_exceeded',
        headers: retryAfterHeaders(1_000),
      });
    }
    return {
      status: 200,
      headers: { 'cache-control': 'no-store' },
      body: {
        object: 'ephemeral_token',
        value: issued.value,
        expires_at: Math.floor(issued.expiresAt / 1000),
        scopes: rights.scopes,
        agents: rights.agents ?? null,
      },
    };
  }

  /** @throws HttpError 403 for an agent that the caller does not reach. */
  #assertReached(agents: readonly string[], principal: Principal): void {
    if (agents.length === 0) return;
    const reached = new Set(
      this.#runtimes
        .one()
        .list(principal)
        .map(({ name }) => name),
    );
    if (agents.every((name) => reached.has(name))) return;
    throw beyondRights('agents');
  }
}

function beyondRights(name: string): HttpError {
  return new HttpError(403, `This API token cannot grant ${name} that it does not have.`, { code: 'insufficient_scope' });
}

function rightsOf({ scopes, agents }: Readonly<Record<string, unknown>>, principal: Principal): EphemeralRights {
  return {
    scopes: (wordsAt(scopes, 'scopes', principal.scopes, SCOPES) ?? principal.scopes) as readonly Scope[],
    agents: wordsAt(agents, 'agents', principal.agents) ?? principal.agents,
  };
}

/**
 * A list that asks for fewer rights.
 *
 * @param held what the caller has; undefined for everything.
 * @param known what exists, where that is a fixed list.
 * @throws HttpError 400 for anything that is not a list of words, 403 for more than the caller has.
 */
function wordsAt(
  value: unknown,
  name: string,
  held: readonly string[] | undefined,
  known?: readonly string[],
): readonly string[] | undefined {
  if (value == null) return undefined;
  const words = Array.isArray(value) ? value.filter((word) => typeof word === 'string') : [];
  if (!Array.isArray(value) || words.length !== value.length || words.length === 0) {
    throw new HttpError(400, `Invalid '${name}': expected a non-empty array of strings.`, { code: 'invalid_value' });
  }
  const unknown = known && words.find((word) => !known.includes(word));
  if (unknown !== undefined) {
    throw new HttpError(400, `Invalid '${name}'. Supported values are: ${known?.join(', ')}.`, { code: 'invalid_value' });
  }
  if (words.length > MAX_NAMES) {
    throw new HttpError(400, `Invalid '${name}': expected at most ${MAX_NAMES} names.`, { code: 'invalid_value' });
  }
  if (words.some((word) => held?.includes(word) === false)) throw beyondRights(name);
  return [...new Set(words)];
}
