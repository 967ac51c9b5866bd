/**
 * Returns why keys must not be fetched from an address, as a clause; undefined if they may be.
 * Anyone who can change what the address returns can sign tokens of any project.
 *
 * @param namedBy the page that names the address, if the operator does not. A page that came over
 * https may name https addresses only.
 */
export function addressFault(address: string, namedBy?: URL): string | undefined {
  if (!URL.canParse(address)) return 'is not a valid URL';
  const { protocol, hostname, username, password } = new URL(address);
  if (username !== '' || password !== '') return 'must not hold a user name or password';
  if (protocol === 'https:') return undefined;
  if (protocol === 'http:' && isLoopback(hostname) && namedBy?.protocol !== 'https:') return undefined;
  if (namedBy?.protocol === 'https:') return 'must be https';
  return 'must be https, except on this machine (localhost): the keys could be changed on the way over http';
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}
