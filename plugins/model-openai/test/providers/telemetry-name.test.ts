import t from 'tap';
import { PROVIDERS } from '../../src/provider/presets.js';
import { connect } from '../connection.js';

/** Values of `gen_ai.provider.name`: those of the conventions, where they have one. */
const NAMES: Readonly<Record<string, string>> = {
  none: 'openai',
  openai: 'openai',
  azure: 'azure.ai.openai',
  anthropic: 'anthropic',
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  deepseek: 'deepseek',
  moonshot: 'moonshot_ai',
  groq: 'groq',
  cerebras: 'cerebras',
  xai: 'x_ai',
  bedrock: 'aws.bedrock',
  'workers-ai': 'workers-ai',
  dashscope: 'dashscope',
  minimax: 'minimax',
  zhipu: 'zhipu',
  perplexity: 'perplexity',
  openrouter: 'openrouter',
  ollama: 'ollama',
  'llama.cpp': 'llama.cpp',
  vllm: 'vllm',
};

t.test('OB-5 every preset has the name of the conventions', async (t) => {
  t.strictSame(Object.keys(NAMES).sort(), [...PROVIDERS].sort());
  for (const provider of PROVIDERS) {
    const { connector } = connect(t, { provider, baseUrl: 'http://127.0.0.1:1' });
    t.equal(connector.provider, NAMES[provider], provider);
  }
});

t.test('OB-5 a preset that the host chooses has it too, and Vertex AI its own', async (t) => {
  const nameAt = (baseUrl: string) => connect(t, { baseUrl }).connector.provider;
  t.equal(nameAt('https://team.openai.azure.com/openai/v1'), 'azure.ai.openai');
  t.equal(nameAt('https://generativelanguage.googleapis.com/v1beta/openai'), 'gcp.gemini');
  t.equal(nameAt('https://europe-west4-aiplatform.googleapis.com/v1/openapi'), 'gcp.vertex_ai');
  t.equal(nameAt('https://models.example.com/v1'), 'openai');
});
