import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { isAiSdkError, isMissingCredentials } from '../failure/ai-sdk-error.js';
import { fault, reasonOf } from './load-provider.js';
import { untilAborted } from './until-aborted.js';

/** Values of every setting that models may refuse. */
const SETTINGS = {
  temperature: 0.5,
  topP: 0.5,
  frequencyPenalty: 0.5,
  presencePenalty: 0.5,
  seed: 1,
  stopSequences: ['\u0000'],
} satisfies Partial<LanguageModelV4CallOptions>;

const NO_CREDENTIALS =
  'the provider package finds no credentials; set apiKey, or credentials and settings, or the environment that it reads';

/** What a package says about its model before the first request. */
export interface Probe {
  /** Settings that the model does not take, by their names in the specification (AI-14). */
  readonly refused: readonly string[];
  /** What it says about the limit of the answer's tokens, if it does not know the model. */
  readonly unknownModel: string | undefined;
}

/**
 * Lets the package prepare a request, which is sent to nobody and answered with an empty stream,
 * to find mistakes of the entry at the start: a missing key, options that the package refuses.
 *
 * @throws ConfigFault
 */
export async function probe(
  model: LanguageModelV4,
  options: Partial<LanguageModelV4CallOptions>,
  signal: AbortSignal,
): Promise<Probe> {
  try {
    const asked = model.doStream({
      ...SETTINGS,
      ...options,
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      abortSignal: signal,
    });
    const { stream } = await untilAborted(asked, signal);
    const reader = stream.getReader();
    const { value } = await reader.read();
    reader.cancel().catch(() => {});
    const warnings = value?.type === 'stream-start' ? value.warnings : [];
    const unknown = warnings.find((warning) => warning.type === 'compatibility' && warning.feature === 'maxOutputTokens');
    return {
      refused: warnings.flatMap((warning) => (warning.type === 'unsupported' ? [warning.feature] : [])),
      unknownModel: unknown && 'details' in unknown ? unknown.details : undefined,
    };
  } catch (error) {
    if (isAiSdkError(error, 'LoadAPIKeyError') || isAiSdkError(error, 'LoadSettingError'))
      throw fault([], `the provider package lacks a setting: ${reasonOf(error)}`);
    if (isAiSdkError(error, 'InvalidArgumentError'))
      throw fault(['providerOptions'], `the package refuses them: ${reasonOf(error).replace(/ Please [^.]*:$/, '')}`);
    if (isMissingCredentials(error)) throw fault([], `${NO_CREDENTIALS}: ${reasonOf(error).replace(/ Please [^.]*:$/, '')}`);
    // An empty answer is an error for some packages.
    return { refused: [], unknownModel: undefined };
  }
}
