/** A section for the configuration: the server asks for a token. */
export const TOKENS = 'auth: { tokens: { use: ./tokens.mjs } }\n';

/** The plugin that stands beside it: it knows a few tokens by heart, each of another scope. */
export const tokens = {
  'tokens.mjs': `
    import { AuthProviders, definePlugin } from '@plugboard/kernel';
    const scopes = ['chat', 'models:read'];
    const principals = {
      'token-of-default': { project: 'default', tokenId: 'default-1', scopes },
      'other-of-default': { project: 'default', tokenId: 'default-2', scopes },
      'token-of-acme': { project: 'acme', scopes },
      'token-of-beta': { project: 'beta', scopes },
      'token-of-one-agent': { project: 'default', agents: ['assistant'], scopes },
    };
    export default definePlugin({
      name: 'tokens', apiVersion: 1, summary: 'Knows tokens by heart', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(AuthProviders, {
        authenticate: ({ bearer }) => Object.hasOwn(principals, bearer) ? { principal: principals[bearer] } : undefined,
      }),
    });
  `,
};

/** The header with a token; no header without a token. */
export function bearer(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}
