import type { HttpConfig } from '../config.js';

/** Explains why the server cannot listen, and how to fix it. */
export function listenError(cause: NodeJS.ErrnoException, entry: string, { host, port }: HttpConfig): Error {
  return new Error(explain(cause, entry, host, port), { cause });
}

function explain({ code, message }: NodeJS.ErrnoException, entry: string, host: string, port: number): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} of ${host} is in use by another program: stop that program, or set another \`port\` for ${entry} (0 picks a free one)`;
    case 'EACCES':
      return `port ${port} of ${host} is reserved by the system: set a \`port\` of 1024 or higher for ${entry}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine: set another \`host\` for ${entry}, such as 127.0.0.1 or 0.0.0.0`;
    default:
      return `${entry} cannot listen on port ${port} of ${host}: ${message}`;
  }
}
