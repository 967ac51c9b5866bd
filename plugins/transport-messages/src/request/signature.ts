/**
 * The signature of every thinking block. Clients want one, and send it back; the server drops the
 * block then. What a connection needs of its own thinking is sealed, or kept with a session.
 */
export const SIGNATURE = Buffer.from('plugboard: not kept').toString('base64');
