// Mastra on Hono, with its server adapter.
import { serve } from '@hono/node-server';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { MastraServer } from '@mastra/hono';
import { Hono } from 'hono';
import { z } from 'zod';

const model = { id: 'bench/bench', url: process.env.MODEL_URL, apiKey: 'none' };
const clock = createTool({
  id: 'clock',
  description: 'Tells the current date and time in a time zone.',
  inputSchema: z.object({ timeZone: z.string() }),
  execute: async ({ timeZone }) => ({ time: new Date().toLocaleString('en-GB', { timeZone }) }),
});
const instructions = 'You are a benchmark.';
const assistant = new Agent({ id: 'assistant', name: 'assistant', instructions, model });
const clerk = new Agent({ id: 'clerk', name: 'clerk', instructions, model, tools: { clock } });

const mastra = new Mastra({ agents: { assistant, clerk } });
const app = new Hono();
await new MastraServer({ app, mastra, prefix: '/api' }).init();
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT) });
