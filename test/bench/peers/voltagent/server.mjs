// VoltAgent with its own server.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent, createTool, VoltAgent } from '@voltagent/core';
import { honoServer } from '@voltagent/server-hono';
import { z } from 'zod';

const model = createOpenAICompatible({ name: 'bench', baseURL: process.env.MODEL_URL })('bench');
const clock = createTool({
  name: 'clock',
  description: 'Tells the current date and time in a time zone.',
  parameters: z.object({ timeZone: z.string() }),
  execute: async ({ timeZone }) => new Date().toLocaleString('en-GB', { timeZone }),
});
const assistant = new Agent({ name: 'assistant', instructions: 'You are a benchmark.', model });
const clerk = new Agent({ name: 'clerk', instructions: 'You are a benchmark.', model, tools: [clock] });

new VoltAgent({ agents: { assistant, clerk }, server: honoServer({ port: Number(process.env.PORT) }) });
