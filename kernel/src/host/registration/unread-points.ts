import { fault } from '../base/errors.js';
import { formatProblem } from '../base/problem.js';
import type { Registered } from './register.js';
import type { Revision } from './revision.js';

/** Warns of contributions that no entry reads, where the owner of the point says what to add. */
export function unreadPoints({ registry, order, configuration }: Revision): readonly string[] {
  const { source, contents } = configuration;
  // An entry that only looks at what stands beside its own contribution serves nothing.
  const serves = ({ reads, contributes }: Registered, key: symbol) => reads.has(key) || !contributes.has(key);
  const read = new Set(order.flatMap((entry) => [...entry.allReads].map(({ key }) => key).filter((key) => serves(entry, key))));
  return registry.points().flatMap(({ point, contributions }) => {
    const contributors = [...new Set(contributions.map(({ entry }) => entry))];
    if (point.unread === undefined || contributors.length === 0 || read.has(point.key)) return [];
    const path = contents.entries.find(({ id }) => id === contributors[0])?.path ?? [];
    const position = source.position(path, 'key');
    return formatProblem({
      ...fault('POINT_UNREAD', contributors, point.id, point.unread),
      file: source.shown,
      position,
      path: [],
    });
  });
}
