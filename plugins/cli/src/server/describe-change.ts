import { type ConfigChange, formatPath } from '@plugboard/kernel/internal';

/** One line for people: `changed words.hello.text`, `changed /etc/words.txt`. */
export function describeChange({ kind, path, file }: ConfigChange): string {
  return `${kind} ${file ?? formatPath(path)}`;
}
