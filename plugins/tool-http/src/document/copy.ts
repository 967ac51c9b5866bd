import { OperationFault } from '../errors/errors.js';

/**
 * A copy of a part of the document, as JSON: a string of the part would keep the text of the whole
 * document in memory.
 *
 * @throws OperationFault if it is no JSON, such as YAML with a circle.
 */
export function copyOf<T>(part: T): T {
  try {
    return JSON.parse(JSON.stringify(part));
  } catch {
    throw new OperationFault('it has a value that is not JSON');
  }
}
