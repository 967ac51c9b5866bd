import { chmodSync, mkdtempSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { HostServer } from '@plugboard/kernel/internal';
import { MAX_REQUEST, type OperatorRequest } from '../server/operator-request.js';
import { removeSocket } from '../server/running-config.js';
import { answerOperator } from './operator-answers.js';

/** The longest path of a socket, in bytes: 103 on macOS, 107 on Linux. */
const MAX_PATH = 103;
/** Requests at a time. */
const MAX_CONNECTIONS = 8;
/** Milliseconds in which a request must arrive and its answer be read. */
const TIME_LIMIT = 30_000;

/**
 * Listens for the commands of operators, for as long as the process lives: `plugboard channels`,
 * `pair` and `outbox`.
 *
 * 1. The socket is in a folder that only this user can enter, with a name that no other server
 *    has, and only this user and root can connect.
 * 2. A connection has one request, a line of JSON, and one answer. It can ask for the three
 *    commands, and for nothing else.
 * 3. It is removed when the process exits. What a killed process leaves, a later start removes
 *    with its record.
 *
 * @param folder where the record of the server is. A short folder replaces it if the path of the
 *   socket would be too long.
 * @returns the path. Undefined if there is no place for it, which the log says at the level debug.
 */
export function openOperatorSocket(server: HostServer, folder: string): string | undefined {
  const unreachable = (err: unknown) => server.log.debug({ err }, 'operators cannot reach this server');
  try {
    const path = join(mkdtempSync(prefixIn(folder)), 'socket'); // the folder is for this user alone
    process.once('exit', () => removeSocket(path));
    const listener = createServer({ allowHalfOpen: true }, (socket) => void serve(server, socket));
    listener.maxConnections = MAX_CONNECTIONS;
    listener.on('error', unreachable);
    listener.listen(path); // which binds at once
    chmodSync(path, 0o600);
    listener.unref();
    return path;
  } catch (error) {
    unreachable(error);
    return undefined;
  }
}

function prefixIn(folder: string): string {
  const [own, short] = [join(folder, 'socket-'), '/tmp/plugboard-'];
  return Buffer.byteLength(join(`${own}XXXXXX`, 'socket')) <= MAX_PATH ? own : short;
}

async function serve(server: HostServer, socket: Socket): Promise<void> {
  socket.on('error', () => socket.destroy()); // the operator has left
  socket.setTimeout(TIME_LIMIT, () => socket.destroy());
  try {
    const answer = await answerOperator(server, parse(await readLine(socket)));
    socket.end(`${JSON.stringify(answer)}\n`);
  } catch (error) {
    server.log.warn({ err: error }, 'the command of an operator failed');
    socket.end(`${JSON.stringify({ error: error instanceof Error ? error.message : 'it failed' })}\n`);
  }
}

async function readLine(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8');
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (Buffer.byteLength(text) > MAX_REQUEST) throw new Error(`the request has more than ${MAX_REQUEST} bytes`);
    if (text.includes('\n')) break;
  }
  return text;
}

/** @throws Error for anything but a request. */
function parse(text: string): OperatorRequest {
  const { command, entry, change } = JSON.parse(text) as OperatorRequest;
  if (!['channels', 'pair', 'outbox'].includes(command))
    throw new Error('the command is unknown; update the plugboard of one side');
  const isText = (value: unknown) => value === undefined || typeof value === 'string';
  if (!isText(entry) || (change !== undefined && !isChange(change))) throw new Error('the request is invalid');
  return { command, entry, change };
}

function isChange(change: unknown): boolean {
  const { kind, value } = change as { readonly kind?: unknown; readonly value?: unknown };
  return kind === 'send-all' || (['approve', 'remove', 'send', 'drop'].includes(String(kind)) && typeof value === 'string');
}
