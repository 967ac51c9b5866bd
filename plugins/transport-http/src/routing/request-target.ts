/** Splits a target into path and query. A proxy may send a whole URL (RFC 9112, 3.2.2). */
export function splitTarget(target: string): readonly [path: string, query: string] {
  const start = target.startsWith('/') ? 0 : afterAuthority(target);
  const mark = target.indexOf('?', start);
  return mark < 0 ? [target.slice(start), ''] : [target.slice(start, mark), target.slice(mark + 1)];
}

function afterAuthority(target: string): number {
  const authority = target.indexOf('://');
  return authority < 0 ? 0 : Math.max(target.indexOf('/', authority + 3), 0);
}
