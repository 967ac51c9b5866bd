import { connect } from 'node:net';
import { CommandError, UsageError } from '@plugboard/kernel/contracts';
import { composeServer } from './compose.js';
import { MAX_ANSWER, type OperatorAnswer, type OperatorFailure, type OperatorRequest } from './operator-request.js';
import { noServer, type RunningConfig, runningConfigs } from './running-config.js';

/** Milliseconds that a server has to answer. */
const TIME_LIMIT = 60_000;

/**
 * Asks the running servers of a file. A change is made by the first that knows what to change.
 *
 * @throws CommandError if none is found or one does not answer, UsageError if none has the entry,
 * ConfigError if none is found and the file cannot be read.
 */
export async function askServers(file: string, request: OperatorRequest): Promise<OperatorAnswer> {
  const answers: OperatorAnswer[] = [];
  let { change } = request;
  for (const server of runningConfigs(file)) {
    const answer = await ask(server, { ...request, change });
    if (answer === undefined) continue;
    answers.push({ ...answer, channels: answer.channels.map((channel) => ({ ...channel, server: server.pid })) });
    if (answer.changed.length > 0 && change?.kind !== 'send-all') change = undefined;
  }
  if (answers.length === 0) {
    await composeServer({ file, partial: true });
    throw new CommandError(noServer(file));
  }
  const answer = merged(answers);
  const { entry } = request;
  if (entry !== undefined && !answer.known.includes(entry.replace(/^transports\./, ''))) {
    const known = answer.known.length > 0 ? `; its channels are ${answer.known.join(', ')}` : '; it has none';
    throw new UsageError(`the server has no channel "${entry}"${known}`);
  }
  return answer;
}

/** Codes of a socket that its server has left: it was killed, and its record is still there. */
const LEFT: readonly unknown[] = ['ECONNREFUSED', 'ENOENT'];

/** @returns undefined if the server runs no longer. */
function ask({ pid, socket: path }: RunningConfig, request: OperatorRequest): Promise<OperatorAnswer | undefined> {
  const failed = (why: string) => new CommandError(`server ${pid} ${why}`);
  return new Promise((resolve, reject) => {
    if (path === undefined) return reject(failed('cannot be asked; its log says why at the level debug'));
    let text = '';
    const socket = connect(path, () => socket.write(`${JSON.stringify(request)}\n`));
    socket.setEncoding('utf8');
    socket.setTimeout(TIME_LIMIT, () => socket.destroy(failed(`did not answer within ${TIME_LIMIT / 1000} s`)));
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > 2 * MAX_ANSWER) socket.destroy(failed('answered too much'));
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (LEFT.includes(error.code)) resolve(undefined);
      else reject(error instanceof CommandError ? error : failed(`cannot be reached: ${error.message}`));
    });
    socket.on('end', () => {
      socket.end();
      try {
        const answer = JSON.parse(text) as OperatorAnswer | OperatorFailure;
        if ('error' in answer) reject(failed(`could not do it: ${answer.error}`));
        else resolve(answer);
      } catch {
        reject(failed('ended before it had answered'));
      }
    });
  });
}

/** Servers over one store answer with the same rows: each is shown once. */
function merged(answers: readonly OperatorAnswer[]): OperatorAnswer {
  const all = <K extends Exclude<keyof OperatorAnswer, 'left'>>(key: K) => {
    const rows = answers.flatMap((answer): readonly unknown[] => answer[key]);
    return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()] as unknown as OperatorAnswer[K];
  };
  return {
    known: all('known'),
    channels: all('channels'),
    requests: all('requests'),
    paired: all('paired'),
    failed: all('failed'),
    changed: all('changed'),
    left: answers.reduce((sum, { left }) => sum + left, 0),
  };
}
