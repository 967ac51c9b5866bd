import type { Principal } from '@plugboard/kernel';
import { missingScope, type Scope } from '@plugboard/kernel/contracts';
import { isCodex } from '@plugboard/open-responses';
import { serviceError } from '@plugboard/openai-protocol';
import type { UpgradeRequest } from '@plugboard/transport-http';

/**
 * The caller at the other end of a connection. A connection can outlive its token, or the token's
 * scopes, so both are checked with every message that needs them.
 */
export class Caller {
  readonly #upgrade: UpgradeRequest;
  #principal: Principal;

  constructor(upgrade: UpgradeRequest) {
    this.#upgrade = upgrade;
    this.#principal = upgrade.principal;
  }

  /** Whether its client is Codex CLI. */
  get isCodex(): boolean {
    return isCodex(this.#upgrade.headers);
  }

  /** As of the last check. */
  get principal(): Principal {
    return this.#principal;
  }

  /**
   * Checks the credential again, and that it has the scopes.
   *
   * @throws HttpError 401, 403 or 503
   */
  async authenticate(...scopes: readonly Scope[]): Promise<Principal> {
    this.#principal = await this.#upgrade.authenticate();
    const missing = missingScope(this.#principal, scopes);
    if (missing !== undefined) throw serviceError(403, `This API token lacks the scope \`${missing}\`.`);
    return this.#principal;
  }

  /** Checks whether a new response may be created now. @throws HttpError 401, 403, 429 or 503 */
  async admit(): Promise<Principal> {
    const principal = await this.authenticate('chat');
    this.#upgrade.countRequest();
    return principal;
  }
}
