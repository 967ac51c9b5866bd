import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Transports } from '../contracts/transport.js';
import type { Clock, IdSource } from '../host/base/ambient.js';
import { compose } from '../host/compose.js';
import type { Server } from '../host/server.js';
import { layout } from '../layout.js';
import { CapturedLog, type LogLine } from './capture-log.js';

export interface StartServerOptions {
  /** Files to stand beside the configuration, by their paths from it: `{ 'prompts/a.md': '…' }`. */
  readonly files?: Readonly<Record<string, string>>;
  /** What `${NAME}` in the configuration stands for. Nothing is taken from the process's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

export interface StartedServer {
  /** Where the first transport that has an address can be reached, for example `http://127.0.0.1:40123`. */
  readonly url: string;
  /** What was logged so far, at the level that the configuration names. */
  readonly logs: readonly LogLine[];
  /** The folder that the configuration stands in. */
  readonly folder: string;
  readonly server: Server;
  /** Stops the server and removes its folder. @throws AggregateError of what did not stop well. */
  stop(): Promise<void>;
}

/**
 * Runs a whole server in this process, from the text of a `plugboard.yaml`: real plugins, a real socket (`http: { port: 0 }` takes a free one).
 * Its folder is made below the working folder's `node_modules`, so that packages are found as they would be for the working folder.
 *
 * @throws ConfigError, with all that is wrong, or StartError; nothing is left behind then.
 */
export async function startServer(yaml: string, options: StartServerOptions = {}): Promise<StartedServer> {
  const { files = {}, env = {}, ...ambient } = options;
  const cache = join(process.cwd(), 'node_modules', '.cache', 'plugboard');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'server-'));
  const log = new CapturedLog();
  try {
    for (const [path, text] of Object.entries({ 'plugboard.yaml': yaml, ...files })) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const server = await compose({ file: join(folder, 'plugboard.yaml'), layout, env, logTo: log, ...ambient });
    await server.start();
    return {
      get url() {
        const address = server
          .extensions(Transports)
          .all()
          .flatMap(({ value }) => value.address() ?? [])[0];
        if (address === undefined) throw new Error('no transport of this server has an address; is `http` among its transports?');
        return address;
      },
      logs: log.lines,
      folder,
      server,
      stop: async () => {
        const failures = await server.stop();
        await rm(folder, { recursive: true, force: true });
        if (failures.length > 0) throw new AggregateError(failures, failures.map(({ message }) => message).join('\n'));
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
