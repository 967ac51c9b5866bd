import { KERNEL } from '../host/base/kernel-package.js';
import type { Server } from '../host/server.js';
import { table } from './arguments.js';
import { type ServerInfo, serverInfo } from './server-info.js';

type Row = readonly [string, string];

/** Least width of the first column, so that both pieces line up. */
const WIDTH = 10;

const OPEN_WARNING: Row = [
  'warning',
  'whoever reaches the address may use every agent and model; a provider under "auth" changes that',
];

/** What `plugboard start` tells the person who ran it, one line per thing: at once where the server is up at once, else in two pieces. */
export class Banner {
  readonly #server: Server;
  readonly #print: (text: string) => void;
  #hasFacts = false;

  constructor(server: Server, print: (text: string) => void) {
    this.#server = server;
    this.#print = print;
  }

  /** To be shown when the start takes long: all that is known, and what is being waited for. */
  waiting(): void {
    const starting = this.#server.host.entries().filter(({ status }) => status === 'starting');
    this.#facts();
    this.#print(`still starting: ${starting.map(({ entry }) => entry).join(', ')}\n`);
  }

  /** To be shown when the server is up. */
  ready(): void {
    this.#facts();
    const facts = serverInfo(this.#server);
    const addresses = facts.addresses.map((address): Row => ['address', address]);
    const [address] = facts.addresses;
    const links = facts.links.flatMap(({ label, target }): Row[] => {
      const url = URL.parse(target, address);
      return url === null ? [] : [[label, url.href]];
    });
    const trial: Row[] = address === undefined ? [] : [['try', curl(address, facts)]];
    this.#rows([...addresses, ...links, ...trial]);
  }

  #facts(): void {
    if (this.#hasFacts) return;
    this.#hasFacts = true;
    const { agents, models, sessions, auth } = serverInfo(this.#server);
    const rows: Row[] = [
      ['agents', agents.join(', ') || 'none: the server is not ready without one'],
      ['models', models.join(', ') || 'none: the server is not ready without one'],
      ['sessions', sessions],
      ['access', auth.length > 0 ? `with a credential (${auth.join(', ')})` : 'open'],
      ...(auth.length > 0 ? [] : [OPEN_WARNING]),
    ];
    this.#print(`plugboard ${KERNEL.version}\n`);
    this.#rows(rows);
  }

  #rows(rows: readonly Row[]): void {
    if (rows.length > 0) this.#print(`${table(rows, WIDTH)}\n`);
  }
}

function curl(address: string, { agents, models, auth }: ServerInfo): string {
  const body = { model: agents[0] ?? models[0] ?? 'assistant', messages: [{ role: 'user', content: 'Hello' }] };
  const token = auth.length > 0 ? ' -H "authorization: Bearer $API_TOKEN"' : '';
  return `curl ${address}/v1/chat/completions${token} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
}
