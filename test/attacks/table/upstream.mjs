import { imagesAt } from '../support/hostile-upstream.ts';
import { chunk, list, user } from './values.mjs';

/** What a server asks on behalf of its callers: model servers, images, MCP servers. */
export const UPSTREAM = {
  'an answer without end': (s) => async () => {
    s.otherwise = { raw: Array(8_000).fill(chunk({ content: 'word '.repeat(10_000) })) };
    await s.chat({ model: 'assistant', messages: user('Hi') });
  },
  'S-68: 20 images of 9 MB by address': (s) => () =>
    Promise.all(['a', 'b'].map((prefix) => s.chat({ model: 'seeing', messages: [imagesAt(s.hostileUrl, 10, prefix)] }))),
  'S-75: events, errors and zipped answers without end': (s) => () =>
    Promise.all(list(24, (at) => s.chat({ model: ['event', 'error', 'compressed'][at % 3], messages: user('Hi') }))),
  'S-75: eight results of 100 MiB of an MCP server': (s) => async () => {
    s.queue.push(...list(8, () => ({ toolCalls: [{ name: 'mcp__large', arguments: {} }] })));
    await Promise.all(list(8, () => s.chat({ model: 'served', messages: user('Go') })));
  },
  'S-75: 4,000 reports of 100 KB of an MCP server': (s) => async () => {
    s.queue.push(...list(8, () => ({ toolCalls: [{ name: 'mcp__reports', arguments: {} }] })));
    await Promise.all(list(8, () => s.chat({ model: 'served', stream: true, messages: user('Go') })));
  },
  'S-76: pages of HTML that repeat <title': (s) => () =>
    Promise.all(list(20, () => s.chat({ model: 'page', messages: user('Hi') }))),
};
