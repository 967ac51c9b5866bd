import t from 'tap';
import { telemetryName } from '../../src/provider/telemetry-name.js';
import { open, PROVIDERS, type ProviderName } from '../connection.js';

/** Values of `gen_ai.provider.name`: those of the conventions. */
const NAMES: Record<ProviderName, string> = {
  anthropic: 'anthropic',
  google: 'gcp.gemini',
  bedrock: 'aws.bedrock',
  openai: 'openai',
  azure: 'azure.ai.openai',
  vertex: 'gcp.vertex_ai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
};

t.test('OB-5 every package has the name of the conventions', async (t) => {
  for (const name of Object.keys(PROVIDERS) as ProviderName[]) {
    const { connector } = await open(t, name);
    t.equal(connector.provider, NAMES[name], name);
  }
});

t.test('OB-5 a platform goes before the model that it serves, and another package keeps its word', async (t) => {
  t.equal(telemetryName('vertex.anthropic.messages'), 'gcp.vertex_ai');
  t.equal(telemetryName('bedrock.anthropic.messages'), 'aws.bedrock');
  t.equal(telemetryName('moonshotai.chat'), 'moonshot_ai');
  t.equal(telemetryName('deepseek.chat'), 'deepseek');
  t.equal(telemetryName('cohere.chat'), 'cohere');
});
