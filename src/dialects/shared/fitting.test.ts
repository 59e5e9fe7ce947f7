import { expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { Events } from '#core/event';
import { composed, type Fit } from './fitting.ts';

const call: GenerateCall = { model: 'm', turns: [], tools: [], output: { type: 'text' }, sampling: {}, stream: false, extra: {} };

/** Adds a letter to the name of the model, and to every text of the answer. */
const adding =
  (letter: string): Fit<never> =>
  (one) => ({
    call: { ...one, model: one.model + letter },
    ignored: [`${letter}: it is added.`],
    restore: (events: Events) => events.map((event) => (event.type === 'text' ? { ...event, text: event.text + letter } : event)),
  });

test('fits are applied in their order, and the answer passes them in reverse', () => {
  const fitted = composed([adding('a'), () => undefined, adding('b')])!(call, undefined)!;
  expect(fitted.call.model).toBe('mab');
  expect(fitted.ignored).toEqual(['a: it is added.', 'b: it is added.']);
  expect(fitted.restore!([{ type: 'text', candidate: 0, text: '' }])).toEqual([{ type: 'text', candidate: 0, text: 'ba' }]);
});

test('where no fit applies the call stays as it is', () => {
  expect(composed([() => undefined, () => undefined])!(call, undefined)).toBeUndefined();
  expect(composed([])).toBeUndefined();
});
