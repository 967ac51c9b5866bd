/** Presets that the conventions of OpenTelemetry know by another name. */
const NAMES: Readonly<Record<string, string>> = {
  none: 'openai', // the dialect
  azure: 'azure.ai.openai',
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  moonshot: 'moonshot_ai',
  xai: 'x_ai',
  bedrock: 'aws.bedrock',
};

/**
 * The value of `gen_ai.provider.name`. Where the conventions have none, it is the preset's name.
 *
 * @param host of the base URL: the same preset serves Gemini on two platforms.
 */
export function telemetryName(preset: string, host: string): string {
  if (preset === 'gemini' && /aiplatform\.googleapis\.com$/.test(host)) return 'gcp.vertex_ai';
  return NAMES[preset] ?? preset;
}
