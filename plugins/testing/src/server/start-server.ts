import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Clock, compose, type IdSource, type Server, Transports } from '@plugboard/kernel';
import type { ServerConfig } from '@plugboard/kernel/internal';
import { CapturedLog, type LogLine } from '../base/captured-log.js';

/** The configuration of a server that a test starts. @experimental */
export interface StartServerOptions {
  /** Files beside the configuration, by their relative paths: `{ 'prompts/a.md': '…' }`. */
  readonly files?: Readonly<Record<string, string>>;
  /** The values of `${NAME}` in the YAML text. The process's own environment is not used. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The folder of the configuration, which remains after `stop`: a second server that is given it
   * finds the data of the first. Without it, a new folder that is removed. Packages are found from
   * it, so it should be below the working folder.
   */
  readonly folder?: string;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

/** A running server of a test. @experimental */
export interface StartedServer {
  /** The address of the first transport that has one, for example `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The log so far, at the level of the configuration. */
  readonly logs: readonly LogLine[];
  /** The folder of the configuration. */
  readonly folder: string;
  readonly server: Server;
  /**
   * Stops the server, and removes its folder unless the test gave one.
   *
   * @throws AggregateError of what did not stop cleanly.
   */
  stop(): Promise<void>;
}

/**
 * Runs a whole server in this process, with real plugins and real sockets (`http: { port: 0 }`
 * takes a free port). By default its folder is below the working folder's `node_modules`, so
 * packages are found as from the working folder.
 *
 * ```ts
 * const server = await startServer({ transports: { http: { port: 0 } }, tools: { dice: { use: plugin } } });
 * ```
 *
 * @param config the text of a `plugboard.yaml`, or an object, in which `use` can be a plugin
 * object.
 * @throws ConfigError with all mistakes, or StartError. Nothing is left behind then.
 * @experimental
 */
export async function startServer(config: string | ServerConfig, options: StartServerOptions = {}): Promise<StartedServer> {
  const { files = {}, env = {}, folder: given, ...ambient } = options;
  const folder = given === undefined ? await newFolder() : resolve(given);
  const removeFolder = async () => {
    if (given === undefined) await rm(folder, { recursive: true, force: true });
  };
  const log = new CapturedLog();
  try {
    for (const [path, text] of Object.entries({ ...(typeof config === 'string' && { 'plugboard.yaml': config }), ...files })) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const source = typeof config === 'string' ? { file: join(folder, 'plugboard.yaml') } : { config, cwd: folder };
    const server = await compose({ ...source, env, logTo: log, ...ambient });
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
        await removeFolder();
        if (failures.length > 0) throw new AggregateError(failures, failures.map(({ message }) => message).join('\n'));
      },
    };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

async function newFolder(): Promise<string> {
  const cache = join(process.cwd(), 'node_modules', '.cache', 'plugboard');
  await mkdir(cache, { recursive: true });
  return mkdtemp(join(cache, 'server-'));
}
