/** Causes that are followed. */
const MAX_DEPTH = 8;

/**
 * The message of an error, and its deepest cause, as a clause for operators: `fetch failed: connect
 * ECONNREFUSED 127.0.0.1:9000`.
 */
export function reasonOf(error: unknown): string {
  let deepest = error;
  for (let depth = 0, next = causeOf(error); next instanceof Error && depth < MAX_DEPTH; depth++) {
    deepest = next;
    next = causeOf(next);
  }
  const [said, why] = [textOf(error), textOf(deepest)];
  return said.includes(why) ? said : [said, why].filter((text) => text !== '').join(': ');
}

/** Of several attempts, such as one for each address of a host, the first says enough. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  return error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined);
}

/** The message, with the code if the message does not have it. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, code } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || message.includes(code)) return message;
  return message === '' ? code : `${message} (${code})`;
}
