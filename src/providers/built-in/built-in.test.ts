import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openTokens } from '#kit/tokens/index';
import type { Part } from '#core/conversation';
import { fold } from '#core/fold';
import { promptTokens } from '#core/measure';
import { ask, callOf, contextOf, distinct, eventsOf, holds, textOf, tool, turn, word, words } from '../../../test/support/built-in-model.ts';

const tokens = await openTokens();
const text = { type: 'string' };

describe('rule 4, repeating', () => {
  test.each([
    'Say exactly: X',
    'Repeat: X',
    'say: X',
    'Echo: X',
    'Please repeat after me: X',
    'Reply with exactly: X',
    'Respond with the following text: X',
    'Could you please say exactly: X',
    'Hello there. Say exactly: X',
    'Hi, say exactly: X',
    'You must reply with exactly: X',
    'I want you to repeat this word for word: X',
    'Say exactly:\nX',
    'Output exactly: X',
  ])('“%s” gives the words back to the last character', (form) =>
    holds(fc.tuple(words, fc.constantFrom('', '.', '!', '?', ' "', ':', '\n\nand a line', ' — [1] {}')), async ([said, end]) => {
      expect(await textOf(form.replace('X', said + end))).toBe(said + end);
    }),
  );

  test.each(['Say exactly: "X"', 'Repeat: “X”.', 'Say "X"', "Repeat the words 'X' please", 'Reply only with "X".', 'Repeat: «X»'])(
    '“%s” gives the words back without quotation marks',
    (form) => holds(words, async (said) => expect(await textOf(form.replace('X', said))).toBe(said)),
  );

  test.each(['Say X', 'Just say X', 'Say exactly X', 'Can you say X?', 'Respond with exactly X', 'Reply with the word X', 'Say X in two words'])(
    '“%s” gives the words back',
    (form) => holds(words, async (said) => expect(await textOf(form.replace('X', said))).toBe(said)),
  );

  test('a system turn that opens with the order is obeyed', () =>
    holds(distinct(2), async ([order, said]) =>
      expect(await textOf([turn('system', `Always reply with exactly: ${order}`), turn('user', said!)])).toBe(order),
    ));

  test('of several system turns only the words of the order are repeated, without quotation marks around them', () =>
    holds(distinct(3), async ([order, other, said]) => {
      for (const asked of [order, `"${order}"`, `“${order}”`]) {
        const turns = [turn('system', `Say exactly: ${asked}`), turn('system', `You have tools.\n\nThe user is ${other}.`), turn('user', said!)];
        expect(await textOf(turns)).toBe(order);
      }
      expect(await textOf([turn('system', `Say exactly: "${order}" and "${other}"`), turn('user', said!)])).toBe(`"${order}" and "${other}"`);
    }));

  test.each(['Write a poem about X', 'Say something about X', 'Answer: X', 'What did X say?', 'Output a list of X'])('“%s” asks for something else', (form) =>
    holds(word, async (said) => expect(await textOf(form.replace('X', said))).toContain('built-in model')),
  );
});

describe('rule 11, answering from the conversation', () => {
  test('what the user told is found again', () =>
    holds(distinct(3), async ([thing, value, other]) => {
      const turns = [turn('user', `My ${thing} is ${value}. I also like ${other}.`), turn('model', 'Noted.'), turn('user', `What is my ${thing}?`)];
      const answer = await textOf(turns);
      expect(answer).toContain(`“My ${thing} is ${value}.”`);
      expect(answer).not.toContain(other);
    }));

  test('what was said last holds', () =>
    holds(distinct(3), async ([thing, old, now]) => {
      const turns = [turn('user', `My ${thing} is ${old}.`), turn('user', `My ${thing} is ${now}.`), turn('user', `What is my ${thing}?`)];
      expect(await textOf(turns)).toContain(now);
    }));

  test('the text may come in the message itself', () =>
    holds(distinct(3), async ([a, b, c]) =>
      expect(await textOf(`The ${a} of ${b} is called ${c}. Water is wet.\n\nWhat is the ${a} of ${b} called?`)).toContain(c),
    ));

  test('a number of turns without anything about it gives no answer', () =>
    holds(distinct(4), async ([a, b, c, d]) => {
      const answer = await textOf([turn('user', `My ${a} is ${b}.`), turn('user', `Where does ${c} keep ${d}?`)]);
      expect(answer).toContain('built-in model');
      expect(answer).not.toContain(b);
    }));
});

describe('rule 11, citing passages', () => {
  const forms = ['[N] X', 'Passage N: X', 'Document N. X', '(N) X', '<doc id="N">X</doc>'];
  test.each(forms)('an answer out of passages like “%s” names the passage', (form) =>
    holds(
      fc.tuple(distinct(9), fc.nat(2), fc.boolean()),
      async ([all, at, inSystem]) => {
        const facts = [0, 3, 6].map((from) => ({
          sentence: `The ${all[from]} of ${all[from + 1]} is ${all[from + 2]}`,
          question: `What is the ${all[from]} of ${all[from + 1]}?`,
        }));
        const passages = facts.map(({ sentence }, index) => form.replace('N', String(index + 1)).replace('X', `${sentence}. Nothing more.`)).join('\n');
        const question = facts[at]!.question;
        const turns = inSystem
          ? [turn('system', `Use these passages.\n\n${passages}`), turn('user', question)]
          : [turn('user', `${passages}\n\nQuestion: ${question}`)];
        expect(await textOf(turns)).toBe(`${facts[at]!.sentence} [${at + 1}].`);
      },
      20,
    ),
  );

  const placed = forms.flatMap((form) => [
    [form, 'on lines of their own', '\n'],
    [form, 'on one line', ' '],
  ]);
  test.each(placed)('passages like “%s” %s need no blank line before the question or behind it', (form, _, between) =>
    holds(
      fc.tuple(distinct(6), fc.integer({ min: 0, max: 1 }), fc.integer({ min: 1, max: 90 })),
      async ([all, at, first]) => {
        const facts = [0, 3].map((from) => `The ${all[from]} of ${all[from + 1]} is ${all[from + 2]}`);
        const passages = facts.map((fact, index) => form.replace('N', String(first + index)).replace('X', `${fact}.`)).join(between);
        const question = `What is the ${all[at * 3]} of ${all[at * 3 + 1]}?`;
        for (const turns of [
          [turn('user', `${passages}\n${question}`)],
          [turn('user', `${question}\n${passages}`)],
          [turn('user', `${passages} ${question}`)],
          [turn('user', `${question}\n\n${passages}`)],
          [turn('system', passages), turn('user', question)],
          [turn('system', `Use these:\n\n${passages}`), turn('user', question)],
        ])
          expect(await textOf(turns)).toBe(`${facts[at]} [${first + at}].`);
      },
      10,
    ),
  );

  test('a passage of several lines is one, wherever the question is', () =>
    holds(distinct(4), async ([a, b, c, d]) => {
      const passages = `[1] Some ${d}.\n[2] A ${a} is old.\nThe ${a} of ${b} is ${c}.`;
      for (const said of [`${passages}\nWhat is the ${a} of ${b}?`, `What is the ${a} of ${b}?\n\n${passages}`])
        expect(await textOf(said)).toBe(`The ${a} of ${b} is ${c} [2].`);
    }));

  test('a number in a sentence, or one out of order, begins no passage', () =>
    holds(distinct(4), async ([a, b, c, d]) => {
      for (const said of [`[1] The ${d} [2] is new. The ${a} of ${b} is ${c}.`, `[1] A ${d}. [7] The ${a} of ${b} is ${c}.`])
        expect(await textOf(`${said}\n\nWhat is the ${a} of ${b}?`)).toMatch(/ \[1\]\.$/);
    }));

  test('several passages that say it are all cited', async () => {
    const answer = await textOf('[1] The zorblat was built by Mara Quill.\n[2] Cats purr.\n[3] Mara Quill built the zorblat.\n\nWho built the zorblat?');
    expect(answer).toMatch(/\[1\]\..*\[3\]\.|\[3\]\..*\[1\]\./);
    expect(answer).not.toContain('[2]');
  });

  test('passages that say nothing about it are not cited', () =>
    holds(distinct(3), async ([a, b, c]) => {
      const answer = await textOf(`[1] The ${a} is old.\n[2] The ${b} is new.\n\nWhat is a ${c}?`);
      expect(answer).toMatch(/passages/);
      expect(answer).not.toMatch(/\[\d\]/);
    }));
});

describe('rules 10 and 11, saying what it is', () => {
  test.each([
    'hello',
    'Hi!',
    'good morning',
    '你好',
    'hi there friend',
    'who are you?',
    'What can you do?',
    'help',
    'what is 2+2?',
    'What is the capital of France?',
    '',
    '???',
  ])('“%s” is answered by the built-in model as such', async (said) => expect(await textOf(said)).toContain('built-in model'));

  test('a call without any turn is answered too', async () => expect(await textOf([])).toContain('built-in model'));

  test('what it is told is noted', () =>
    holds(distinct(2), async ([a, b]) => expect(await textOf(`My ${a} is ${b}.`)).toBe('Noted. Ask me about it and I will find it again.')));
});

describe('rule 8, media', () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAUCAYAAAC07w7bAAAAAElFTkSuQmCC';
  const media = (over: object) => ({ type: 'media', kind: 'image', ...over }) as Part;

  test('type and size of an image are named', async () => {
    expect(await textOf([turn('user', 'What is this?', media({ base64: png, mediaType: 'image/png' }))])).toContain('a PNG image of 10 × 20 pixels, 45 bytes');
  });

  test('an address is named by its host and never fetched', async () => {
    const answer = await textOf([turn('user', 'Look', media({ url: 'https://example.com/secret/path.jpg?key=1' }))]);
    expect(answer).toContain('an image at example.com, which I do not fetch');
    expect(answer).not.toMatch(/secret|key/);
  });

  test('sounds and files are named by type and size', async () => {
    const answer = await textOf([
      turn(
        'user',
        media({ kind: 'audio', mediaType: 'audio/wav', base64: 'A'.repeat(4000) }),
        media({ kind: 'file', mediaType: 'application/pdf', name: 'a.pdf', base64: 'AAAA' }),
      ),
    ]);
    expect(answer).toContain('a WAV sound, 3.0 KB');
    expect(answer).toContain('a PDF file “a.pdf”, 3 bytes');
  });
});

describe('lengths and ends', () => {
  test('an answer has at most max tokens, then it finishes with length', () =>
    holds(
      fc.tuple(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), fc.integer({ min: 1, max: 30 })),
      async ([said, maxTokens]) => {
        const whole = await textOf(`Say exactly: x${said}`);
        const { candidates, usage } = await ask(`Say exactly: x${said}`, { sampling: { maxTokens } });
        const cut = candidates[0]!.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
        expect(whole.startsWith(cut)).toBe(true);
        expect(candidates[0]!.reason).toBe(tokens.count(whole) > maxTokens ? 'length' : 'stop');
        expect(usage!.output).toBe(Math.min(tokens.count(whole), maxTokens));
      },
      100,
    ));

  test('thoughts and arguments count too', async () => {
    const reasoning = { effort: 'high' } as const;
    expect((await ask('hello', { reasoning, sampling: { maxTokens: 3 } })).candidates[0]).toMatchObject({
      reason: 'length',
      parts: [{ type: 'thought', text: 'This is a' }],
    });
    expect((await ask('f', { tools: [tool('f', { text })], sampling: { maxTokens: 2 } })).candidates[0]).toMatchObject({
      reason: 'length',
      parts: [{ name: 'f' }],
    });
  });

  test('a stop sequence and what follows it is not said', () =>
    holds(distinct(5), async ([a, b, c, d, e]) => {
      const text = `${a} ${b} ${c} ${d}`;
      const { candidates } = await ask(`Say exactly: ${text}`, { sampling: { stop: [e!, d!, c!] } });
      const first = Math.min(...[c!, d!, e!].map((word) => text.indexOf(word)).filter((at) => at >= 0)); // a word may be a part of another
      expect(candidates[0]).toMatchObject({ reason: 'stop', parts: first === 0 ? [] : [{ text: text.slice(0, first) }] });
    }));

  test('a stop sequence at the start leaves nothing', async () =>
    expect((await ask('Say exactly: one', { sampling: { stop: ['o'] } })).candidates[0]).toMatchObject({ reason: 'stop', parts: [] }));
});

describe('candidates and seed', () => {
  test('as many candidates as are wanted, each finished, in different words where there are some', () =>
    holds(fc.integer({ min: 1, max: 5 }), async (candidates) => {
      const result = await ask('hello', { sampling: { candidates } });
      expect(result.candidates).toHaveLength(candidates);
      expect(new Set(result.candidates.map((one) => JSON.stringify(one.parts))).size).toBe(Math.min(3, candidates));
      expect(result.candidates.every((one) => one.reason === 'stop')).toBe(true);
    }));

  test('the same seed gives the same events, another only other words', () =>
    holds(fc.tuple(fc.integer(), distinct(2)), async ([seed, [a, b]]) => {
      const call = callOf([turn('user', `My ${a} is ${b}.`), turn('user', `What is my ${a}?`)], { sampling: { seed, candidates: 2 }, reasoning: {} });
      expect(await eventsOf(call)).toEqual(await eventsOf(call));
      expect(await textOf(call.turns, { sampling: { seed } })).toContain(`“My ${a} is ${b}.”`);
    }));
});

describe('thoughts and log probabilities', () => {
  test('a thought comes first where reasoning is wanted, and none where it is not', async () => {
    const kinds = async (over: Parameters<typeof ask>[1]) => (await ask('hello', over)).candidates[0]!.parts.map((part) => part.type);
    expect(await kinds({})).toEqual(['text']);
    expect(await kinds({ reasoning: { effort: 'none' } })).toEqual(['text']);
    expect(await kinds({ reasoning: {} })).toEqual(['thought', 'text']);
    expect(await kinds({ reasoning: { effort: 'low' } })).toEqual(['thought', 'text']);
    const { usage, candidates } = await ask('hello', { reasoning: { effort: 'high' } });
    expect(usage!.thought).toBe(tokens.count((candidates[0]!.parts[0] as { text: string }).text));
  });

  test('each token has its log probability, the likeliest first, and their sum is a probability', () =>
    holds(fc.tuple(words, fc.integer({ min: 0, max: 20 })), async ([said, logprobs]) => {
      const { candidates } = await ask(`Say exactly: ${said}`, { sampling: { logprobs } });
      const scores = candidates[0]!.logprobs!;
      expect(scores.map((one) => one.token)).toEqual(tokens.split(said));
      expect(Buffer.from(scores.flatMap((one) => one.bytes!)).toString()).toBe(said);
      for (const { top = [], token, logprob } of scores) {
        expect(top).toHaveLength(logprobs);
        expect(top[0] ?? { token, logprob }).toMatchObject({ token, logprob });
        expect(top.map((one) => one.logprob)).toEqual(top.map((one) => one.logprob).toSorted((a, b) => b - a));
        expect(top.reduce((sum, one) => sum + Math.exp(one.logprob), 0)).toBeLessThanOrEqual(1.000001);
        expect(new Set(top.map((one) => one.token)).size).toBe(top.length);
      }
      expect(await ask(`Say exactly: ${said}`, { sampling: { logprobs } })).toMatchObject({ candidates });
    }));
});

describe('every answer', () => {
  const calls = fc
    .record({
      said: fc.oneof(
        fc.string({ unit: 'grapheme' }),
        words,
        words.map((some) => `Say exactly: ${some}`),
        fc.constantFrom('hello', 'zuko', 'call zuko'),
      ),
      candidates: fc.integer({ min: 1, max: 3 }),
      effort: fc.option(fc.constantFrom('none', 'low', 'high')),
      json: fc.boolean(),
    })
    .map(({ said, candidates, effort, json }) =>
      callOf(said, {
        sampling: { candidates, logprobs: 2 },
        tools: [tool('zuko', { text })],
        ...(effort ? { reasoning: { effort } } : {}),
        ...(json ? { output: { type: 'json' } } : {}),
      }),
    );

  test('comes as started, then what is said, one finish a candidate, and usage that is counted exactly', () =>
    holds(
      calls,
      async (call) => {
        const events = await eventsOf(call);
        expect(events[0]).toEqual({ type: 'started', model: 'built-in', ignored: [] });
        expect(events.at(-1)!.type).toBe('usage');
        expect(events.filter((event) => event.type === 'finished')).toHaveLength(call.sampling.candidates!);
        const { candidates, usage } = fold(await eventsOf(call));
        const count = candidates
          .flatMap((one) => one.parts)
          .reduce(
            (sum, part) =>
              sum + (part.type === 'tool-call' ? tokens.count(part.name) + tokens.count(part.json) : tokens.count((part as { text: string }).text)),
            0,
          );
        expect(usage).toMatchObject({
          input: await promptTokens(call, tokens.countAll, { caller: { userId: 1 }, signal: new AbortController().signal }),
          output: count,
          source: 'provider',
        });
      },
      100,
    ));

  test('comes in words', async () => {
    const events = await eventsOf(callOf('Say exactly: one two three, four\n five'));
    expect(events.flatMap((event) => (event.type === 'text' ? [event.text] : []))).toEqual(['one', ' two', ' three,', ' four', '\n', ' five']);
  });

  test('names what it ignores, and refuses it where that is wanted', async () => {
    const call = callOf('hello', { sampling: { temperature: 0.7, topP: 1, presencePenalty: 0 }, tools: [{ type: 'foreign', dialect: 'd', value: {} }] });
    expect((await eventsOf(call))[0]).toMatchObject({
      ignored: ['temperature: the output is not sampled', 'tools: only functions and custom tools are called'],
    });
    await expect(eventsOf(call, contextOf({ strict: true }))).rejects.toMatchObject({ code: 'invalid', details: { field: 'temperature' } });
    for (const temperature of [0, 1]) {
      const usual = callOf('hello', { sampling: { temperature, topP: 1, frequencyPenalty: 0, presencePenalty: 0 } });
      expect((await eventsOf(usual, contextOf({ strict: true })))[0]).toMatchObject({ ignored: [] });
    }
  });
});
