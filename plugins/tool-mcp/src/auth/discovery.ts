import {
  type AuthorizationServerMetadata,
  checkResourceAllowed,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  resourceUrlFromServerUrl,
} from '@modelcontextprotocol/client';
import type { Fetch } from '../http/fetch.js';
import { noMetadata, otherResource } from './errors.js';

/** Where to ask for tokens for an MCP server, and for what. */
export interface TokenSource {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata;
  /** The resource that tokens are for (RFC 8707). */
  readonly resource: string;
  /** The scopes that the MCP server lists. */
  readonly scopes: readonly string[];
}

/**
 * Finds the authorization server of an MCP server (RFC 9728, RFC 8414).
 *
 * @param metadataUrl where the metadata of the MCP server are, if it said so.
 * @param choose chooses one of the authorization servers that it names, if any.
 */
export async function discover(
  url: URL,
  metadataUrl: URL | undefined,
  choose: (named: readonly string[]) => string,
  fetch: Fetch,
): Promise<TokenSource> {
  const protectedResource = await resourceMetadata(url, metadataUrl, fetch);
  const own = resourceUrlFromServerUrl(url);
  const { resource = own.href, authorization_servers: named = [], scopes_supported: scopes = [] } = protectedResource ?? {};
  if (!checkResourceAllowed({ requestedResource: own, configuredResource: resource })) throw otherResource(resource);
  const chosen = choose(named);
  const metadata = await discoverAuthorizationServerMetadata(chosen, { fetchFn: fetch });
  if (!metadata) throw noMetadata(chosen);
  return { issuer: metadata.issuer, metadata, resource, scopes };
}

/** The metadata of the MCP server; undefined if it has none. */
async function resourceMetadata(url: URL, metadataUrl: URL | undefined, fetch: Fetch) {
  try {
    const options = metadataUrl === undefined ? {} : { resourceMetadataUrl: metadataUrl };
    return await discoverOAuthProtectedResourceMetadata(url, options, fetch);
  } catch (error) {
    // The SDK reports a 404 so.
    if (metadataUrl === undefined && error instanceof Error && error.message.includes('does not implement')) return undefined;
    throw error;
  }
}
