import { formatPath } from '../base/problem.js';
import type { ConfigChange } from './changes.js';

/** One line for people: `changed words.hello.text`, `changed /etc/words.txt`. */
export function describeChange({ kind, path, file }: ConfigChange): string {
  return `${kind} ${file ?? formatPath(path)}`;
}
