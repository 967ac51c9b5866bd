import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
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
   * it, so it should be below the working folder. Files in it that the kit did not write are never
   * overwritten.
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
  /** Stops the server and removes its folder, unless the test gave one. @throws AggregateError */
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
 * object, or `{ file }`: the path of a file of your own, which is used where it is.
 * @throws ConfigError with all mistakes, StartError, or an Error if a file is in the way. Nothing
 * is left behind then.
 * @experimental
 */
export async function startServer(
  config: string | ServerConfig | { readonly file: string },
  options: StartServerOptions = {},
): Promise<StartedServer> {
  const { files = {}, env = {}, folder: named, ...ambient } = options;
  const own = typeof config === 'object' && typeof config.file === 'string' ? resolve(config.file) : undefined;
  const given = own === undefined ? named : dirname(own);
  const folder = given === undefined ? await newFolder() : resolve(given);
  const removeFolder = async () => {
    if (given === undefined) await rm(folder, { recursive: true, force: true });
  };
  const log = new CapturedLog();
  try {
    await writeFiles(folder, { ...(typeof config === 'string' && { 'plugboard.yaml': config }), ...files });
    const file = own ?? (typeof config === 'string' ? join(folder, 'plugboard.yaml') : undefined);
    const source = file === undefined ? { config: config as ServerConfig, cwd: folder } : { file };
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

/** What the kit wrote, by path: only that may change in a folder that a test gave. */
const written = new Map<string, string>();

/** @throws Error, before anything is written, if a file of somebody else is in the way. */
async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const wanted = Object.entries(files).map(([path, text]) => [join(folder, path), text] as const);
  for (const [path, text] of wanted) {
    const existing = await readFile(path, 'utf8').catch(() => undefined);
    if (existing === undefined || existing === text || existing === written.get(path)) continue;
    const cure = basename(path) === 'plugboard.yaml' ? 'to run it, call startServer({ file }); otherwise ' : '';
    throw new Error(`startServer would overwrite ${path}, which it did not write: ${cure}give another folder`);
  }
  for (const [path, text] of wanted) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    written.set(path, text);
  }
}

async function newFolder(): Promise<string> {
  const cache = join(process.cwd(), 'node_modules', '.cache', 'plugboard');
  await mkdir(cache, { recursive: true });
  return mkdtemp(join(cache, 'server-'));
}
