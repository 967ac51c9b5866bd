import { Account } from '@plugboard/kernel/contracts';
import { invalidRequest, type ProtocolError, requireString, truncate } from '@plugboard/openai-protocol';
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
  if (!items.some(isReference)) return items;
  /** The items of the responses that were looked up, by their ids. */
  const outputs = new Map<string, ReadonlyMap<unknown, InputItem>>();
  const outputOf = async (response: string): Promise<ReadonlyMap<unknown, InputItem>> => {
    const known = outputs.get(response);
    if (known) return known;
    const stored = await responses.get(response, principal, account);
    const { output = [] } = stored ? (JSON.parse(stored.response) as { output?: readonly InputItem[] }) : {};
    const items = new Map([...(stored?.input ?? []), ...output].map((item) => [item.id, item]));
    outputs.set(response, items);
    return items;
  };
  const sizes = new Map<InputItem, number>();
  let total = 0;
  const count = (item: InputItem) => {
    const bytes = sizes.get(item) ?? Buffer.byteLength(JSON.stringify(item));
    sizes.set(item, bytes);
    total += bytes;
    if (total > inputLimit.bytes) throw referencesTooLarge(inputLimit);
    account.require(Account.costOf(bytes));
  };
  const resolved: InputItem[] = [];
  for (const [index, item] of items.entries()) {
    if (!isReference(item)) {
      resolved.push(item);
      continue;
    }
    const param = `input[${index}].id`;
    const name = requireString(item.id, param);
    if (name.startsWith(APPROVAL_PREFIX)) {
      resolved.push(item);
      continue;
    }
    const response = responseOfItem(name);
    const found = response && (await outputOf(response)).get(name);
    if (!found) throw invalidRequest(`Item with id '${truncate(name)}' not found.`, { param });
    count(found);
    resolved.push(found);
  }
  return resolved;
}

function referencesTooLarge({ bytes, setting }: InputCaller['inputLimit']): ProtocolError {
  const message = `The items that the request refers to are larger than the limit of ${bytes} bytes (\`${setting}\`).`;
  return invalidRequest(message, { status: 413, param: 'input', code: 'request_too_large' });
}

/** Of the ids of requests for approval. */
const APPROVAL_PREFIX = 'mcpr_';

function isReference(item: InputItem): boolean {
  return item?.type === 'item_reference';
}
