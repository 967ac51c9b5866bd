import type { Principal } from '@plugboard/kernel';
import { missingScope } from '@plugboard/kernel/contracts';
import { serviceError } from '@plugboard/openai-protocol';
import type { Lease, UpgradeRequest } from '@plugboard/transport-http';

/**
 * Who is at the other end of a connection. A connection can outlive its token, or the token's
 * rights, so both are checked again and again.
 */
export class Caller {
  readonly #upgrade: UpgradeRequest;
  #principal: Principal;

  constructor(upgrade: UpgradeRequest) {
    this.#upgrade = upgrade;
    this.#principal = upgrade.principal;
  }

  /** As of the last check. */
  get principal(): Principal {
    return this.#principal;
  }

  /** Checks the credential again. @throws HttpError 401 or 503 */
  async authenticate(): Promise<Principal> {
    this.#principal = await this.#upgrade.authenticate();
    return this.#principal;
  }

  /** Counts the memory of a new response. */
  leaseReply(): Lease {
    return this.#upgrade.leaseReply();
  }

  /** Checks whether a new response may be created now. @throws HttpError 401, 403, 429 or 503 */
  async admit(): Promise<Principal> {
    const principal = await this.authenticate();
    const missing = missingScope(principal, ['chat']);
    if (missing !== undefined) throw serviceError(403, `This API token lacks the scope \`${missing}\`.`);
    this.#upgrade.countRequest();
    return principal;
  }
}
