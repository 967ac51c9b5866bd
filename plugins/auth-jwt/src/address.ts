/**
 * Why keys must not be fetched from an address, as half a sentence, or undefined where they may be: whoever can change what comes from
 * there can sign tokens of any project.
 * @param namedBy the page that names the address, where it is not the operator: what came over https leads nowhere else.
 */
export function addressFault(address: string, namedBy?: URL): string | undefined {
  if (!URL.canParse(address)) return 'is no URL';
  const { protocol, hostname, username, password } = new URL(address);
  if (username !== '' || password !== '') return 'must not hold a user name or password';
  if (protocol === 'https:') return undefined;
  if (protocol === 'http:' && isLoopback(hostname) && namedBy?.protocol !== 'https:') return undefined;
  if (namedBy?.protocol === 'https:') return 'must be https';
  return 'must be https, except on this machine (localhost): what comes over http can be changed on the way';
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}
