// Repeats requests as fast as they are answered, on a thread of its own, and reads the answers
// without looking at them. `workerData`: the port, and for each connection the requests that it
// repeats in turns: `{ method, path, headers, body }`. Posts the number of each status every 100
// ms.
import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

const { port, connections } = workerData;
const statuses = {};
const agent = new Agent({ keepAlive: true });

function send({ method, path, headers, body }) {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, agent, method, path, headers }, (response) => {
      response.resume();
      response.once('close', () => resolve(String(response.statusCode)));
    });
    sent.once('error', () => resolve('connection'));
    sent.end(body);
  });
}

for (const requests of connections) {
  void (async () => {
    for (let at = 0; ; at = (at + 1) % requests.length) {
      const status = await send(requests[at]);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 'connection') await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
}
setInterval(() => parentPort.postMessage(statuses), 100);
