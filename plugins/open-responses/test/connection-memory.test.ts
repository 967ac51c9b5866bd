import t from 'tap';
import { NOTHING_CARRIED } from '../src/service/carried.js';
import { ConnectionMemory, ConnectionMemoryPool } from '../src/service/connection-memory.js';

const response = (id: string, size: number) => ({
  id,
  agent: 'assistant',
  carried: NOTHING_CARRIED,
  messages: [{ role: 'user' as const, content: 'x'.repeat(size) }],
});
const MIB = 2 ** 20;

t.test('remembers the last response of each of 32 streams', async (t) => {
  const memory = new ConnectionMemory(new ConnectionMemoryPool(100 * MIB));
  memory.put('', response('a', 10));
  memory.put('', response('b', 10));
  t.equal(memory.find('a'), undefined);
  t.equal(memory.last('')?.id, 'b');
  for (let stream = 0; stream < 32; stream++) memory.put(`${stream}`, response(`r${stream}`, 10));
  t.equal(memory.last(''), undefined, 'the oldest stream is forgotten');
  t.equal(memory.find('r31')?.id, 'r31');
  memory.evict('r31');
  t.equal(memory.find('r31'), undefined);
});

t.test('holds 4 MiB, and nothing that is larger', async (t) => {
  const pool = new ConnectionMemoryPool(100 * MIB);
  const memory = new ConnectionMemory(pool);
  memory.put('a', response('a', 3 * MIB));
  memory.put('b', response('b', 3 * MIB));
  t.same([memory.find('a'), memory.find('b')?.id], [undefined, 'b']);
  memory.put('b', response('c', 5 * MIB));
  t.equal(memory.last('b'), undefined);
  t.same([memory.bytes, pool.bytes], [0, 0]);
  memory.put('stored', { id: 's', agent: 'assistant', messages: undefined, carried: NOTHING_CARRIED });
  t.equal(memory.find('s')?.messages, undefined);
  t.equal(memory.bytes, 0);
});

t.test('beyond the limit of all connections the largest memory is cleared, and a closed one remembers nothing', async (t) => {
  const pool = new ConnectionMemoryPool(5 * MIB);
  const [small, large, other] = [new ConnectionMemory(pool), new ConnectionMemory(pool), new ConnectionMemory(pool)];
  small.put('', response('small', MIB));
  large.put('', response('large', 3 * MIB));
  other.put('', response('other', 2 * MIB));
  t.same([small.find('small')?.id, large.find('large'), other.find('other')?.id], ['small', undefined, 'other']);
  t.ok(pool.bytes < 5 * MIB);
  small.close();
  small.put('', response('late', 10));
  t.equal(small.find('late'), undefined);
  other.close();
  t.equal(pool.bytes, 0);
});
