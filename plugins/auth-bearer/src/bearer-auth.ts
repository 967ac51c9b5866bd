import { inject } from '@plugboard/kernel/injection';
import { EphemeralTokenRoute } from './ephemeral-route.js';
import { BearerProvider } from './provider/bearer-provider.js';
import { BearerTokens } from './provider/bearer-tokens.js';
import { TokenRegistry } from './registry/token-registry.js';

/** What an entry consists of: the root of the graph. */
export class BearerAuth {
  constructor(
    /** The lifecycle of the entry. */
    @inject(BearerTokens) readonly tokens: BearerTokens,
    @inject(BearerProvider) readonly provider: BearerProvider,
    @inject(EphemeralTokenRoute) readonly route: EphemeralTokenRoute,
    /** For the command line. */
    @inject(TokenRegistry) readonly registry: TokenRegistry,
  ) {}
}
