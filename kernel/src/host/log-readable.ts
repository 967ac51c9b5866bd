const COLOURS: Readonly<Record<string, string>> = { trace: '90', debug: '90', info: '36', warn: '33', error: '31', fatal: '41' };
/** The same on every line of a server, so that a person is better off without. */
const DULL = new Set(['time', 'level', 'msg', 'service', 'version', 'pid', 'err']);

/** A JSON log line for a person at a terminal: `14:05:09 info  turn ended  agent=assistant steps=2`, and an error's stack below it. */
export function readable(line: string): string {
  const fields = JSON.parse(line) as Record<string, unknown>;
  const level = String(fields.level);
  const time = String(fields.time).slice(11, 19);
  const rest = Object.entries(fields)
    .filter(([key]) => !DULL.has(key))
    .map(([key, value]) => ` ${key}=${typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)}`)
    .join('');
  const stack = (fields.err as { stack?: unknown } | undefined)?.stack;
  const below = typeof stack === 'string' ? `${stack.replace(/^/gm, '    ')}\n` : '';
  return `\x1b[90m${time}\x1b[0m \x1b[${COLOURS[level] ?? '0'}m${level.padEnd(5)}\x1b[0m ${fields.msg ?? ''}\x1b[90m ${rest}\x1b[0m\n${below}`;
}
