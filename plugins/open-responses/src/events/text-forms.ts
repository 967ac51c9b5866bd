import type { GrowingForm } from './output-item.js';

/** A `message` item: what the model says in one step. */
export const MESSAGE = textForm('"type":"message","role":"assistant"', 'content', {
  events: 'response.output_text',
  field: 'text',
  inEach: ',"content_index":0',
  after: ',"logprobs":[]',
  part: {
    events: 'response.content_part',
    json: (text) => `{"type":"output_text","text":"${text}","annotations":[],"logprobs":[]}`,
  },
});

/** A `message` item that says why the model does not answer. */
export const REFUSAL = textForm('"type":"message","role":"assistant"', 'content', {
  events: 'response.refusal',
  field: 'refusal',
  inEach: ',"content_index":0',
  part: { events: 'response.content_part', json: (text) => `{"type":"refusal","refusal":"${text}"}` },
});

/** A `reasoning` item: the model's reasoning, as one summary part. */
export const REASONING = textForm('"type":"reasoning"', 'summary', {
  events: 'response.reasoning_summary_text',
  field: 'text',
  inEach: ',"summary_index":0',
  part: { events: 'response.reasoning_summary_part', json: (text) => `{"type":"summary_text","text":"${text}"}` },
});

/** @param list the field that holds the part. */
function textForm(
  fields: string,
  list: 'content' | 'summary',
  form: Omit<GrowingForm, 'fields'> & Required<Pick<GrowingForm, 'part'>>,
): GrowingForm {
  const { part } = form;
  return { ...form, fields: (text) => `${fields},"${list}":[${text === undefined ? '' : part.json(text)}]` };
}
