import type { ConfigProblem } from '@plugboard/kernel';
import { HostPolicy } from '@plugboard/kernel/contracts';
import type { HttpConfig } from './config.js';
import { type OnSkip, operationsOf } from './document/operations.js';
import { readDocument } from './document/read-document.js';
import { select } from './document/select.js';
import { DocumentFault, OperationFault } from './errors/errors.js';
import { compileOperation, type OperationPlan } from './operation/compile-operation.js';
import { serverOf } from './operation/servers.js';
import { MAX_PARTS } from './schema/convert-schema.js';

/** Parts of all schemas together, so that no document takes long to load. */
const MAX_PARTS_OF_ALL = 500_000;
/** Parts that a schema may have in any case. */
const MIN_PARTS = 100;

/** An operation, and where it is called. */
export interface LoadedOperation {
  readonly plan: OperationPlan;
  readonly server: URL;
}

/** What an entry offers, or what is wrong with its options. */
interface Loaded {
  readonly operations: readonly LoadedOperation[];
  readonly problems: readonly ConfigProblem[];
}

/**
 * Reads a document and converts the operations that the options select.
 *
 * @param text the document. @param onSkip called for each operation that cannot be a tool.
 */
export function loadOperations(text: string, config: HttpConfig, onSkip: OnSkip): Loaded {
  try {
    return load(text, config, onSkip);
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error;
    return { operations: [], problems: [documentProblem(config.openapi, error)] };
  }
}

/** A mistake that the whole document has. */
export function documentProblem(openapi: string, { message }: DocumentFault): ConfigProblem {
  return { path: ['openapi'], message: `${openapi} ${message}` };
}

function load(text: string, config: HttpConfig, onSkip: OnSkip): Loaded {
  const document = readDocument(text);
  const ownHeaders = new Set(Object.keys(config.headers).map((name) => name.toLowerCase()));
  const { selected, problems } = select(operationsOf(document, onSkip), config);
  const documentUrl = isUrl(config.openapi) ? config.openapi : undefined;
  const addresses = addressesOf(config);
  const operations: LoadedOperation[] = [];
  // Not what others left over: no operation changes another (OAS-2).
  const parts = Math.max(MIN_PARTS, Math.min(MAX_PARTS, Math.floor(MAX_PARTS_OF_ALL / selected.length)));
  for (const operation of selected) {
    const server = serverOf(document.root, operation, config.baseUrl, documentUrl);
    if (addresses.refuses(server))
      throw new DocumentFault(
        `names the server ${server.origin}, which is private; if it may be called, set \`baseUrl\`, or allowPrivate: ["${server.host}"]`,
      );
    try {
      operations.push({ plan: compileOperation(document, operation, ownHeaders, parts), server });
    } catch (error) {
      if (!(error instanceof OperationFault)) throw error;
      onSkip(operation.name, error.message);
    }
  }
  return { operations, problems };
}

/** The addresses that the options allow. */
export function addressesOf({ openapi, baseUrl, allowPrivate = [] }: HttpConfig): HostPolicy {
  const named = [openapi, baseUrl].filter((text) => text !== undefined).filter(isUrl);
  return new HostPolicy({ named: named.map((text) => new URL(text)), allowPrivate });
}

export function isUrl(openapi: string): boolean {
  return /^https?:\/\//i.test(openapi);
}
