import fc from 'fast-check';
import t from 'tap';
import { toolResultOf } from '../src/tools/tool-result.js';

const KINDS = ['text', 'image', 'audio', 'resource', 'resource_link', 'other'];

/** Anything that JSON can say, and now and then what MCP would say. */
const anything = fc.jsonValue({ maxDepth: 4 });
const block = fc.oneof(
  anything,
  fc.record(
    {
      type: fc.oneof(fc.constantFrom(...KINDS), anything),
      text: fc.oneof(fc.string({ unit: 'binary' }), anything),
      data: fc.oneof(fc.base64String(), anything),
      mimeType: fc.oneof(fc.string(), anything),
      uri: fc.oneof(fc.webUrl(), anything),
      size: fc.oneof(fc.nat(), anything),
      resource: fc.oneof(fc.record({ text: anything, blob: anything, mimeType: anything }, { requiredKeys: [] }), anything),
    },
    { requiredKeys: [] },
  ),
);
const result = fc.record(
  { content: fc.oneof(fc.array(block), anything), structuredContent: anything, isError: fc.oneof(fc.boolean(), anything) },
  { requiredKeys: [] },
);

t.test('any answer becomes parts that the runtime knows', async () => {
  fc.assert(
    fc.property(result, (result) => {
      const { content, isError } = toolResultOf(result as Record<string, unknown>);
      if (Array.isArray(result.content) && result.content.length > 0) checkEqual(content.length, result.content.length);
      checkEqual(isError, result.isError === true);
      for (const part of content) {
        if (part.type === 'text') checkEqual(typeof part.text, 'string');
        else if (part.type === 'image') checkEqual(`${typeof part.mimeType} ${typeof part.data}`, 'string string');
        else if (part.kind === '' || !(part.bytes >= 0)) throw new Error(`a part without kind or size: ${JSON.stringify(part)}`);
      }
    }),
    { numRuns: 2000 },
  );
});

function checkEqual(found: unknown, wanted: unknown): void {
  if (found !== wanted) throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`);
}

t.test('the size of base64 text is that of the encoded bytes', async () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const data = Buffer.from(bytes).toString('base64');
      const { content } = toolResultOf({ content: [{ type: 'audio', data, mimeType: 'audio/wav' }] });
      checkEqual(JSON.stringify(content), JSON.stringify([{ type: 'other', kind: 'audio/wav', bytes: bytes.length }]));
    }),
  );
});

t.test('R-041 content that is nested too deeply becomes an error with a message', async (t) => {
  const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`);
  t.match(toolResultOf({ structuredContent: deep }), { isError: true, content: [{ type: 'text', text: /nested too deeply/ }] });
  t.strictSame(toolResultOf({ content: [{ type: 'odd', deep }] }).content, [{ type: 'other', kind: 'odd', bytes: 0 }]);
});

t.test('long names are cut', async (t) => {
  const uri = `data:,${'x'.repeat(10_000)}`;
  const [part] = toolResultOf({ content: [{ type: 'resource_link', uri }] }).content;
  t.equal(part?.type === 'other' && part.kind.length, 'resource_link '.length + 500);
});
