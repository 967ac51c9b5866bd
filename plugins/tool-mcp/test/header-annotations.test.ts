import t from 'tap';
import { annotationFault } from '../src/http/header-annotations.js';

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });
const named = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name });

t.test('MCP-4 properties of primitive types may name headers, also in nested objects', async (t) => {
  t.equal(annotationFault(object({ a: named('Region'), b: named('X-Count', 'integer'), c: named('Dry', 'boolean') })), undefined);
  t.equal(annotationFault(object({ a: object({ b: named('Region') }) })), undefined);
  t.equal(
    annotationFault(object({ a: { type: 'string', default: { 'x-mcp-header': 7 }, enum: [{ 'x-mcp-header': 7 }] } })),
    undefined,
  );
  for (const schema of [undefined, null, true, 'text', {}]) t.equal(annotationFault(schema), undefined);
});

t.test('MCP-4 an annotation elsewhere, of another type, without a name or named twice is a fault', async (t) => {
  const faults: readonly (readonly [schema: unknown, fault: string])[] = [
    [{ type: 'object', 'x-mcp-header': 'Region' }, 'it has x-mcp-header elsewhere than on a property'],
    [object({ a: { type: 'array', items: named('Region') } }), 'it has x-mcp-header elsewhere than on a property'],
    [object({}, { $defs: { a: named('Region') } }), 'it has x-mcp-header elsewhere than on a property'],
    [object({}, { anyOf: [named('Region')] }), 'it has x-mcp-header elsewhere than on a property'],
    [object({ a: { patternProperties: { '^x': named('Region') } } }), 'it has x-mcp-header elsewhere than on a property'],
    [object({ a: named('two words') }), 'its x-mcp-header is not the name of a header'],
    [object({ a: named('') }), 'its x-mcp-header is not the name of a header'],
    [object({ a: named(7) }), 'its x-mcp-header is not the name of a header'],
    [object({ a: named('R', 'number') }), 'its x-mcp-header "R" is on a property that is not a string, integer or boolean'],
    [object({ a: named('R', ['string']) }), 'its x-mcp-header "R" is on a property that is not a string, integer or boolean'],
    [object({ a: named('Region'), b: named('REGION') }), 'its x-mcp-header "REGION" is there twice'],
  ];
  for (const [schema, fault] of faults) t.equal(annotationFault(schema), fault);
});

t.test('MCP-4 a schema that is nested too deeply is a fault, and ends', async (t) => {
  let schema: object = named('Region');
  for (let depth = 0; depth < 200; depth++) schema = object({ a: schema });
  t.equal(annotationFault(schema), 'its inputSchema is nested too deeply');
});
