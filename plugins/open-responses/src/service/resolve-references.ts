import type { Principal } from '@plugboard/kernel';
import { invalidRequest, requireString, truncate } from '@plugboard/openai-protocol';
import type { InputItem } from '../request/request.js';
import { responseOfItem, type StoredResponses } from './stored-responses.js';

/**
 * The items of a request with references replaced by the output items that they name. Only items of
 * stored responses of the same project can be referenced.
 *
 * @throws ProtocolError 400 for a reference to an unknown item. @throws TurnError
 */
export async function resolveReferences(
  items: readonly InputItem[],
  responses: StoredResponses,
  principal: Principal,
): Promise<readonly InputItem[]> {
  if (!items.some(isReference)) return items;
  const outputs = new Map<string, readonly InputItem[]>();
  const outputOf = async (response: string): Promise<readonly InputItem[]> => {
    const known = outputs.get(response);
    if (known) return known;
    const stored = await responses.get(response, principal);
    const { output = [] } = stored ? (JSON.parse(stored.response) as { output?: readonly InputItem[] }) : {};
    outputs.set(response, output);
    return output;
  };
  const resolved: InputItem[] = [];
  for (const [index, item] of items.entries()) {
    if (!isReference(item)) {
      resolved.push(item);
      continue;
    }
    const param = `input[${index}].id`;
    const name = requireString(item.id, param);
    const response = responseOfItem(name);
    const found = response && (await outputOf(response)).find(({ id }) => id === name);
    if (!found) throw invalidRequest(`Item with id '${truncate(name)}' not found.`, { param });
    resolved.push(found);
  }
  return resolved;
}

function isReference(item: InputItem): boolean {
  return item?.type === 'item_reference';
}
