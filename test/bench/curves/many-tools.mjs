import { definePlugin, ToolSources } from '@plugboard/kernel';

const inputSchema = {
  type: 'object',
  properties: { path: { type: 'string', description: 'The path of a file.' }, lines: { type: 'integer' } },
  required: ['path'],
};

/** The tools of an agent of curves.yaml. */
export default definePlugin({
  name: 'many-tools',
  apiVersion: 1,
  summary: 'Tools that are offered and never called',
  configSchema: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
  register(ctx) {
    const tools = Array.from({ length: ctx.config.count }, (_, index) => ({
      name: `tool_${index}`,
      description: `Reads a file and returns its lines, each with its number. This is tool ${index}.`,
      inputSchema,
      effect: 'read',
      run: () => '',
    }));
    ctx.contribute(ToolSources, { tools: () => tools });
  },
});
