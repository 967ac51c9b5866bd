import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ModelServer } from '@plugboard/testing';
import { WebSocket } from 'ws';
import { FILES } from './configuration.mjs';
import { ATTACKER, MIB, TIMEOUT, user } from './values.mjs';

/** MiB. */
const HEAP = 256;
/** Milliseconds between two looks at the peak of memory. */
const WATCH_INTERVAL = 50;

/** A server under attack, with its model server. */
export class Subject {
  /** What the attacker has sent, in bytes, and how often each status was received. */
  bytes = 0;
  statuses = {};
  isOver = false;
  /** More for the last column. */
  note = '';
  /** What the model of the attacker answers next, and then. */
  queue = [];
  otherwise = { text: 'Hello' };
  /** Resident memory in MiB. */
  peak = 0;
  endedAt = 0;
  #watch;

  static async start({ root, hostileUrl, verbose }) {
    const subject = new Subject();
    subject.hostileUrl = hostileUrl;
    subject.folder = mkdtempSync(join(tmpdir(), 'plugboard-attack-'));
    for (const [file, text] of Object.entries(FILES)) writeFileSync(join(subject.folder, file), text);
    symlinkSync(join(root, 'node_modules'), join(subject.folder, 'node_modules'));
    subject.models = await ModelServer.start();
    subject.models.respond(({ body }) =>
      body.model === 'good' ? { text: 'Hello' } : (subject.queue.shift() ?? subject.otherwise),
    );
    const bin = ['plugins/cli', 'kernel'].map((folder) => join(root, folder, 'bin/plugboard.js')).find(existsSync);
    subject.child = spawn(process.execPath, [`--max-old-space-size=${HEAP}`, bin, 'start'], {
      cwd: subject.folder,
      env: { PATH: process.env.PATH, MODEL_URL: subject.models.url, HOSTILE_URL: hostileUrl },
      stdio: ['ignore', 'pipe', verbose ? 'inherit' : 'ignore'],
    });
    await subject.#listens();
    return subject;
  }

  async #listens() {
    let output = '';
    this.child.stdout.on('data', (text) => {
      output += text;
    });
    this.child.once('exit', () => {
      this.endedAt = performance.now();
    });
    while (!this.port && this.isAlive) {
      await wait(20);
      this.port = Number(/^ {2}address +http:\/\/\S+:(\d+)$/m.exec(output)?.[1] ?? 0);
    }
    if (!this.isAlive) throw new Error(`the server did not start: ${output}`);
    this.url = `http://127.0.0.1:${this.port}`;
    this.#watch = setInterval(() => {
      if (this.isAlive) this.peak = Math.max(this.peak, this.#memory('VmHWM'));
    }, WATCH_INTERVAL);
  }

  get isAlive() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** The statuses that the attacker received. */
  get answers() {
    const counts = Object.entries(this.statuses).map(([status, count]) => `${count} × ${status}`);
    return counts.join(', ');
  }

  chat(body) {
    return this.post('/v1/chat/completions', body);
  }

  get(path) {
    return this.post(path, undefined);
  }

  async post(path, body, headers = {}) {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    this.bytes += text?.length ?? 0;
    let status = 'broken';
    try {
      const response = await fetch(this.url + path, {
        method: text === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${ATTACKER}`, 'content-type': 'application/json', ...headers },
        body: text,
        signal: AbortSignal.timeout(TIMEOUT),
      });
      const answer = await response.text();
      status = response.status;
      return response.ok && answer.startsWith('{') ? JSON.parse(answer) : undefined;
    } catch (error) {
      if (error.name === 'TimeoutError') status = 'waiting';
      return undefined;
    } finally {
      this.count(status);
    }
  }

  count(status) {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
  }

  /** Does something again and again, for so many milliseconds. */
  async repeat(what, length) {
    const end = performance.now() + length;
    while (!this.isOver && this.isAlive && performance.now() < end) await what();
  }

  /** Watches a conversation on a socket. */
  async watch(conversation) {
    const headers = { authorization: `Bearer ${ATTACKER}` };
    const socket = new WebSocket(`ws://127.0.0.1:${this.port}/v1/live`, { headers }).on('error', () => {});
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'svc:conversation.watch', conversation }));
    await once(socket, 'message');
  }

  /** What is not the attack yet: it is not counted. */
  async setUp(path, body) {
    const answer = await this.post(path, body);
    this.bytes = 0;
    this.statuses = {};
    return answer ?? {};
  }

  /** Makes a conversation of 54 MB. @returns its id, and that of a response of the same size. */
  async conversation() {
    const content = 'x'.repeat(3 * MIB);
    for (let n = 0; n < 18; n++)
      await this.setUp('/v1/chat/completions', { model: 'assistant', session_id: 'large', messages: user(content) });
    const { data = [] } = (await this.get('/v1/conversations')) ?? {};
    let last;
    for (let n = 0; n < 18; n++) {
      const before = last?.id && { previous_response_id: last.id };
      last = await this.setUp('/v1/responses', { model: 'assistant', input: content, ...before });
    }
    return [data[0]?.id, last?.id];
  }

  /** Begins the peak of resident memory again. @returns the memory now. */
  resetPeak() {
    writeFileSync(`/proc/${this.child.pid}/clear_refs`, '5');
    this.peak = this.#memory('VmRSS');
    return this.peak;
  }

  /**
   * The longest time for which the event loop stood still since the last call, and how much of it
   * the loop worked, in milliseconds. Undefined if it stands still now.
   */
  async longestStall() {
    try {
      const response = await fetch(`${this.url}/longest`, { signal: AbortSignal.timeout(3_000) });
      return await response.json();
    } catch {
      return undefined;
    }
  }

  async stop() {
    clearInterval(this.#watch);
    this.child.kill('SIGKILL');
    await this.models.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #memory(field) {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
    return Number(kib ?? 0) / 1024;
  }
}
