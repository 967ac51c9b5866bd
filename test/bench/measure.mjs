import { send } from './load.mjs';
import { summary } from './statistics.mjs';

/** CPU microseconds of a server per request. */
export async function cpuPer(server, kind, load) {
  const before = await server.cpu();
  await send(server.port, kind, load);
  return ((await server.cpu()) - before) / load.count;
}

/** The ratios of figures to those of the same rounds. */
export function ratio(values, base) {
  return summary(values.map((value, round) => value / base[round]));
}
