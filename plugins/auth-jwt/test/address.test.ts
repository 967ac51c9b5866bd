import t from 'tap';
import { addressFault } from '../src/address.js';

t.test('a page that came over https must name an https address of the keys', async (t) => {
  const secure = new URL('https://login.example.com/.well-known/openid-configuration');
  const own = new URL('http://127.0.0.1:9000/.well-known/openid-configuration');
  t.equal(addressFault('https://keys.example.com/', secure), undefined);
  for (const address of ['http://127.0.0.1/keys', 'http://localhost/keys', 'http://keys.example.com/', 'data:,{"keys":[]}']) {
    t.equal(addressFault(address, secure), 'must be https', address);
  }
  t.equal(addressFault('http://localhost/keys', own), undefined);
  t.match(addressFault('http://keys.example.com/', own), /^must be https, except on this machine/);
});
