import t from 'tap';
import { nearest, suggestion } from '../../../src/host/base/nearest.js';

const options = ['model', 'baseUrl', 'apiKey', 'headers', 'idleTimeout'];

t.equal(nearest('modle', options), 'model', 'two letters swapped are one slip');
t.equal(nearest('base_url', options), 'baseUrl', 'how a word is joined counts for nothing');
t.equal(nearest('APIKEY', options), 'apiKey', 'capitals do not matter');
t.equal(nearest('header', options), 'headers');
t.equal(nearest('idelTimeuot', options), 'idleTimeout', 'a long word may have more slips');
t.equal(nearest('temperature', options), undefined, 'nothing is near');
t.equal(nearest('x', ['a', 'b']), undefined, 'one letter is not near another');
t.equal(nearest('fest', ['fast', 'best']), 'fast', 'the first of equals');
t.equal(suggestion('modle', options), ', did you mean "model"?');
t.equal(suggestion('zzz', ['fast', 'slow']), '; known: "fast", "slow"', 'where nothing is near, what there is');
t.equal(suggestion('zzz', []), '');
