/** The names of the OpenTelemetry conventions, by the packages' words. The first match counts. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/bedrock/, 'aws.bedrock'], // a platform goes before the model that it serves
  [/vertex/, 'gcp.vertex_ai'],
  [/^azure/, 'azure.ai.openai'],
  [/^google/, 'gcp.gemini'],
  [/^mistral/, 'mistral_ai'],
  [/^moonshot/, 'moonshot_ai'],
  [/^xai/, 'x_ai'],
];

/**
 * The value of `gen_ai.provider.name`. Where the conventions have none, it is the package's word.
 *
 * @param provider as the package's model names it: `anthropic.messages`, `google.vertex.chat`.
 */
export function telemetryName(provider: string): string {
  return NAMES.find(([pattern]) => pattern.test(provider))?.[1] ?? provider.split('.')[0] ?? provider;
}
