import type { HttpConfig } from '../config.js';

/** Why the server could not listen, and what to do about it. */
export function listenError(cause: NodeJS.ErrnoException, entry: string, { host, port }: HttpConfig): Error {
  return new Error(explain(cause, entry, host, port), { cause });
}

function explain({ code, message }: NodeJS.ErrnoException, entry: string, host: string, port: number): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} of ${host} is in use by another program: stop that one, or give ${entry} another \`port\` (0 takes any free one)`;
    case 'EACCES':
      return `port ${port} of ${host} is reserved by the system: give ${entry} a \`port\` from 1024 up`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine: give ${entry} another \`host\`, such as 127.0.0.1 or 0.0.0.0`;
    default:
      return `${entry} cannot listen on port ${port} of ${host}: ${message}`;
  }
}
