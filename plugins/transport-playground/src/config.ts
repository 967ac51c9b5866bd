import type { CheckContext, ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    title: {
      type: 'string',
      minLength: 1,
      maxLength: 60,
      default: 'Plugboard',
      description: 'The name at the top of the page and in the browser tab',
    },
    suggestions: {
      type: 'array',
      items: { type: 'string', minLength: 1, maxLength: 200 },
      maxItems: 6,
      default: ['What can you do?', 'Which tools do you have?'],
      description: 'First messages that an empty chat offers',
    },
    docs: {
      type: 'string',
      description: 'URL of your documentation; the page links to it',
    },
    home: {
      type: 'boolean',
      default: true,
      description: 'Redirect a browser that opens `/` to the playground',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type PlaygroundConfig = Infer<typeof configSchema>;

/** `docs` must be a web address: `javascript:` and other schemes are refused. */
export function checkConfig({ docs }: PlaygroundConfig, _check: CheckContext): readonly ConfigProblem[] {
  if (docs === undefined || isWebAddress(docs)) return [];
  return [{ path: ['docs'], message: `"${docs}" is not a URL that begins with http:// or https://` }];
}

function isWebAddress(text: string): boolean {
  const { protocol } = URL.parse(text) ?? {};
  return protocol === 'https:' || protocol === 'http:';
}
