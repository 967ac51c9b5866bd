import { list, MIB } from './values.mjs';

/** Requests that run no turn, repeated. */
export const READS = {
  'S-71: 80 readers of an item of 9 MB': async (s) => {
    const items = [{ type: 'message', role: 'user', content: 'x'.repeat(9 * MIB) }];
    const { id } = await s.setUp('/v1/conversations', { agent: 'assistant', items });
    return () => Promise.all(list(80, () => s.repeat(() => s.get(`/v1/conversations/${id}/items`), 8_000)));
  },
  'S-71: 16 connections that repeat a short GET': (s) => () =>
    Promise.all(list(16, () => s.repeat(() => s.get('/v1/models'), 8_000))),
  'S-76: 40 cancels of a conversation of 54 MB': async (s) => {
    const [id] = await s.conversation();
    return () => Promise.all(list(40, () => s.post(`/v1/conversations/${id}/cancel`, {})));
  },
};
