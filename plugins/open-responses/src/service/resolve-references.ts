import { Account } from '@plugboard/kernel/contracts';
import { invalidRequest, requireString, truncate } from '@plugboard/openai-protocol';
import type { InputItem } from '../request/request.js';
import type { InputCaller } from './response-plan.js';
import { responseOfItem, type StoredResponses } from './stored-responses.js';

/**
 * The items of a request with references replaced by the items that they name: of every kind, from
 * the output and the input of stored responses of the same project. A request for approval says
 * nothing to the model, so a reference to one stays as it is. Each item counts like bytes of the
 * body, as often as it is named (S-50).
 *
 * @throws ProtocolError 400 for a reference to an unknown item, 413 for items beyond the limit of a
 *   body. @throws TurnError
 */
export async function resolveReferences(
  items: readonly InputItem[],
  responses: StoredResponses,
  { principal, account, inputLimit }: InputCaller,
): Promise<readonly InputItem[]> {
  const isLookedUp = ({ type, id }: InputItem) =>
    type === 'item_reference' && !(typeof id === 'string' && id.startsWith(APPROVAL_PREFIX));
  if (!items.some((item) => item && isLookedUp(item))) return items;
  /** The items of the responses that were looked up, with their sizes, by their ids. */
  const known = new Map<string, ReadonlyMap<unknown, readonly [InputItem, number]>>();
  const itemsOf = async (response: string) => {
    const stored = await responses.get(response, principal, account);
    const { output = [] } = stored ? (JSON.parse(stored.response) as { output?: readonly InputItem[] }) : {};
    const all = [...(stored?.input ?? []), ...output];
    return new Map(all.map((item) => [item.id, [item, Buffer.byteLength(JSON.stringify(item))] as const]));
  };
  let total = 0;
  const resolved: InputItem[] = [];
  for (const [index, item] of items.entries()) {
    if (!item || !isLookedUp(item)) {
      resolved.push(item);
      continue;
    }
    const param = `input[${index}].id`;
    const name = requireString(item.id, param);
    const response = responseOfItem(name) ?? '';
    const own = known.get(response) ?? (await itemsOf(response));
    known.set(response, own);
    const [found, bytes] = own.get(name) ?? [];
    if (!found || bytes === undefined) throw invalidRequest(`Item with id '${truncate(name)}' not found.`, { param });
    total += bytes;
    if (total > inputLimit.bytes) {
      const limit = `the limit of ${inputLimit.bytes} bytes (\`${inputLimit.setting}\`)`;
      const message = `The items that the request refers to are larger than ${limit}.`;
      throw invalidRequest(message, { status: 413, param: 'input', code: 'request_too_large' });
    }
    account.require(Account.costOf(bytes));
    resolved.push(found);
  }
  return resolved;
}

/** Of the ids of requests for approval. */
const APPROVAL_PREFIX = 'mcpr_';
