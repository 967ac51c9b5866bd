export { listOptions as configSchema } from '@plugboard/openai-protocol';
