import type { Infer, JsonSchema } from '@plugboard/kernel';

const names = { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 } as const;

export const configSchema = {
  type: 'object',
  properties: {
    openapi: {
      type: 'string',
      minLength: 1,
      description:
        'The OpenAPI document, 3.0 to 3.2, as JSON or YAML: a path relative to the configuration file, or a URL that is read ' +
        'at the start and on SIGHUP, without `headers`.',
      examples: ['./shop.yaml', 'https://api.example.com/openapi.json'],
    },
    operations: {
      ...names,
      description:
        'The operations to offer, by `operationId`; one without it is `get_orders_id` for `GET /orders/{id}`. Default, without ' +
        '`tags` too: all.',
      examples: [['listOrders', 'getOrder']],
    },
    tags: { ...names, description: 'Offers the operations with one of these tags, and those of `operations`.' },
    baseUrl: {
      type: 'string',
      format: 'url',
      description:
        'Address of the API, in place of all `servers` of the document. It may be private. Its query is sent with each request.',
      examples: ['https://api.example.com/v1'],
    },
    headers: {
      type: 'object',
      additionalProperties: { type: 'string', minLength: 1, secret: true },
      description: 'Headers of each request, such as `Authorization`. The model can neither see nor set them.',
      default: {},
    },
    allowPrivate: {
      ...names,
      description:
        'Hosts with a private address that the document or a redirect may name: `shop.internal`, `10.0.0.7` or, for one port, ' +
        '`localhost:3000`.',
    },
    responseLimit: {
      type: 'string',
      format: 'size',
      description: 'Maximum size of a response that is read, after decompression. The rest is left out, with a note.',
      default: '1mb',
    },
  },
  required: ['openapi'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type HttpConfig = Infer<typeof configSchema>;
