import type { HostServer } from '@plugboard/kernel/internal';
import { PROGRAM } from '../base/program.js';
import { table } from '../command/arguments.js';
import { routesOf } from '../server/descriptions.js';
import { accessOf, channelsInMemory, type ServerInfo, serverInfo } from '../server/server-info.js';

type Row = readonly [string, string];

/** The route that the banner shows a request to, if it is served. */
const CHAT = '/v1/chat/completions';

/** Least width of the first column, so that both pieces line up. */
const WIDTH = 10;

const OPEN_WARNING: Row = [
  'warning',
  'anyone who can reach the address can use every agent and model; add a provider under "auth" to change that',
];

const NO_ADDRESS: Row = ['address', 'none: no entry listens for callers; add a transport that does, such as http: {}'];

/**
 * The output of `plugboard start`, one fact a line: all of it when the server is up. If the start
 * takes long, it says before what it waits for; in a pipe also what is known. A terminal shows the
 * log between the two, so there all facts come at the end.
 */
export class Banner {
  readonly #server: HostServer;
  readonly #print: (text: string) => void;
  readonly #isTerminal: boolean;
  #printed = false;

  constructor(server: HostServer, print: (text: string) => void, isTerminal: boolean) {
    this.#server = server;
    this.#print = print;
    this.#isTerminal = isTerminal;
  }

  /** Prints what the start waits for. Called if it takes longer than usual. */
  waiting(): void {
    const starting = this.#server.host.entries().filter(({ status }) => status === 'starting');
    if (!this.#isTerminal) this.#printInfo();
    this.#print(`still starting: ${starting.map(({ entry }) => entry).join(', ')}\n`);
  }

  /** Prints the remaining lines. Called when the server is up. */
  ready(): void {
    this.#printInfo();
    const info = serverInfo(this.#server);
    const { channels } = info;
    const isSilent = !info.listens && channels.length === 0;
    const addresses = isSilent ? [NO_ADDRESS] : info.addresses.map((address): Row => ['address', address]);
    const polling: Row[] = channels.length > 0 ? [['channels', channels.join(', ')]] : [];
    const address = info.addresses.find((one) => /^https?:/.test(one));
    const links = info.links.flatMap(({ label, target }): Row[] => {
      const url = URL.parse(target, address);
      return url === null ? [] : [[label, url.href]];
    });
    const isServed = routesOf(this.#server).some(({ method, path }) => method === 'POST' && path === CHAT);
    const trial: Row[] = address === undefined || !isServed ? [] : [['try', curl(address, info)]];
    this.#rows([...addresses, ...polling, ...links, ...trial]);
  }

  #printInfo(): void {
    if (this.#printed) return;
    this.#printed = true;
    const info = serverInfo(this.#server);
    const { agents, models, sessions, auth, listens } = info;
    const lost = channelsInMemory(info);
    const rows: Row[] = [
      ['agents', agents.join(', ') || 'none: the server is not ready without one'],
      ['models', models.join(', ') || 'none: the server is not ready without one'],
      ['sessions', sessions],
      ['process', String(process.pid)],
      ['access', accessOf(info)],
      ...(auth.length === 0 && listens ? [OPEN_WARNING] : []),
      ...(lost === undefined ? [] : [['warning', lost] as const]),
    ];
    this.#print(`plugboard ${PROGRAM.version}\n`);
    this.#rows(rows);
  }

  #rows(rows: readonly Row[]): void {
    if (rows.length > 0) this.#print(`${table(rows, WIDTH)}\n`);
  }
}

function curl(address: string, { agents, models, auth }: ServerInfo): string {
  const body = { model: agents[0] ?? models[0] ?? 'assistant', messages: [{ role: 'user', content: 'Hello' }] };
  const token = auth.length > 0 ? ' -H "authorization: Bearer $PLUGBOARD_TOKEN"' : '';
  return `curl ${address}${CHAT}${token} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
}
