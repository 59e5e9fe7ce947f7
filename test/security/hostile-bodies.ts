import type { Attack } from './attack.ts';

const times = <Item>(count: number, item: (at: number) => Item) => Array.from({ length: count }, (_, at) => item(at));
const deep = (levels: number, opening = '[', closing = ']', inmost = '') => `${opening.repeat(levels)}${inmost}${closing.repeat(levels)}`;
const user = (content: unknown) => ({ role: 'user', content });
const text = { type: 'text', text: 'x' };

const root = '/server/chatcompat/v1';
const chat = `${root}/chat/completions`;
const responses = `${root}/responses`;
const messages = '/server/messages/v1/messages';
const gemini = (verb: string, model = 'gpt-4o-mini') => `/server/gencompat/v1beta/models/${model}:${verb}`;
const users = '/server/admin/users';

/** One conversation, as each interface spells it: its field that takes a list of turns, and what else it needs. */
const faces = [
  { path: chat, face: 'chat', field: 'messages', rest: { model: 'gpt-4o-mini' } },
  { path: responses, face: 'responses', field: 'input', rest: { model: 'gpt-4o-mini' } },
  { path: messages, face: 'messages', field: 'messages', rest: { model: 'gpt-4o-mini', max_tokens: 9 } },
  { path: `${messages}/count_tokens`, face: 'count_tokens', field: 'messages', rest: { model: 'gpt-4o-mini' } },
  { path: gemini('generateContent'), face: 'generateContent', field: 'contents', rest: {} },
  { path: gemini('countTokens'), face: 'countTokens', field: 'contents', rest: {} },
  { path: users, face: 'admin', field: 'email', rest: { plan: 'x' } },
] as const;

/** JSON whose field is written by hand. */
const spelled = (field: string, json: string, rest: object) =>
  `{${JSON.stringify(rest).slice(1, -1)}${Object.keys(rest).length > 0 ? ',' : ''}"${field}":${json}}`;

/** Of what no value of a face may be made, in its main field. */
const values: readonly (readonly [string, () => string])[] = [
  ['a million zeros', () => `[${'0,'.repeat(1_000_000)}0]`],
  ['999,000 zeros', () => `[${'0,'.repeat(998_999)}0]`],
  ['300,000 empty objects', () => `[${'{},'.repeat(299_999)}{}]`],
  ['300,000 small objects', () => `[${'{"a":0},'.repeat(299_999)}{}]`],
  ['100,000 levels of lists', () => deep(100_000)],
  ['100,000 levels of objects', () => deep(100_000, '{"a":', '}', '0')],
  ['10,000 lists of 60 levels', () => `[${`${deep(60)},`.repeat(9999)}0]`],
  ['an object of 9,999 keys', () => JSON.stringify(Object.fromEntries(times(9999, (at) => [`k${at}`, at])))],
  ['100 objects of 9,000 keys', () => `[${times(50, () => JSON.stringify(Object.fromEntries(times(9000, (at) => [`k${at}`, 0])))).join(',')}]`],
  [
    '110,000 keys of small objects',
    () => `[${times(6900, (at) => JSON.stringify(Object.fromEntries(times(16, (key) => [`k${at * 16 + key}`, 0])))).join(',')}]`,
  ],
  ['numbers of 100 KB', () => `[${`${'9'.repeat(100_000)},`.repeat(100)}0]`],
  ['numbers with exponents', () => `[${'1e300,'.repeat(90_000)}0]`],
  ['15 MB of escapes', () => `"${'\\u0041'.repeat(2_500_000)}"`],
  ['30 MB of line feeds', () => `"${'\\n'.repeat(15_000_000)}"`],
  ['30 MB of lone surrogates', () => `"${'\\ud800'.repeat(5_000_000)}"`],
  ['30 MB of quotes', () => `"${'\\"'.repeat(15_000_000)}"`],
  ['30 MB of letters of three bytes', () => `"${'語'.repeat(10_000_000)}"`],
  ['30 MB of letters of four bytes', () => `"${'😀'.repeat(7_500_000)}"`],
  ['30 MB of one letter', () => `"${'x'.repeat(30_000_000)}"`],
];

/** Well-formed requests with too much of one thing. */
const heaps: readonly (readonly [string, string, () => object])[] = [
  ['100,000 messages', chat, () => ({ messages: times(100_000, () => user('x')) })],
  ['100,000 messages of parts', chat, () => ({ messages: times(50_000, () => user([text])) })],
  ['100,000 parts', chat, () => ({ messages: [user(times(100_000, () => text))] })],
  [
    '10,000 tools',
    chat,
    () => ({
      messages: [user('x')],
      tools: times(10_000, (at) => ({ type: 'function', function: { name: `t${at}`, parameters: { type: 'object', properties: { a: { type: 'string' } } } } })),
    }),
  ],
  ['100,000 stop sequences', chat, () => ({ messages: [user('x')], stop: times(100_000, (at) => `s${at}`) })],
  ['9,999 keys of metadata', chat, () => ({ messages: [user('x')], metadata: Object.fromEntries(times(9999, (at) => [`k${at}`, 'v'])) })],
  ['9,999 biases', chat, () => ({ messages: [user('x')], logit_bias: Object.fromEntries(times(9999, (at) => [`${at}`, 1])) })],
  [
    '50,000 tool calls of a history',
    chat,
    () => ({
      messages: [
        user('x'),
        { role: 'assistant', tool_calls: times(50_000, (at) => ({ id: `c${at}`, type: 'function', function: { name: 't', arguments: '{"a":1}' } })) },
        ...times(50_000, (at) => ({ role: 'tool', tool_call_id: `c${at}`, content: 'x' })),
      ],
    }),
  ],
  [
    'tool results for one call',
    chat,
    () => ({
      messages: [
        user('x'),
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 't', arguments: '{}' } }] },
        ...times(100_000, () => ({ role: 'tool', tool_call_id: 'c', content: 'x' })),
      ],
    }),
  ],
  [
    'arguments of 20 MB',
    chat,
    () => ({
      messages: [
        user('x'),
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 't', arguments: `{"a":"${'x'.repeat(20_000_000)}"}` } }] },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    }),
  ],
  [
    'arguments of 900,000 values',
    chat,
    () => ({
      messages: [
        user('x'),
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 't', arguments: `{"a":[${'1,'.repeat(900_000)}1]}` } }] },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    }),
  ],
  [
    'arguments of 900,000 texts',
    chat,
    () => ({
      messages: [
        user('x'),
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 't', arguments: `{"a":[${'"a",'.repeat(900_000)}1]}` } }] },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    }),
  ],
  ['10,000 pictures', chat, () => ({ messages: [user(times(10_000, () => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } })))] })],
  [
    '10,000 pictures by address',
    chat,
    () => ({ messages: [user(times(10_000, (at) => ({ type: 'image_url', image_url: { url: `https://a.example/${at}` } })))] }),
  ],
  [
    'a picture of 30 MB that is none',
    chat,
    () => ({ messages: [user([{ type: 'image_url', image_url: { url: `data:image/png;base64,${'!'.repeat(30_000_000)}` } }])] }),
  ],
  ['a picture of 30 MB', chat, () => ({ messages: [user([{ type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(30_000_000)}` } }])] })],
  [
    'a text file of 30 MB',
    chat,
    () => ({ messages: [user([{ type: 'file', file: { filename: 'a.txt', file_data: `data:text/plain;base64,${'QUJD'.repeat(7_500_000)}` } }])] }),
  ],
  [
    '10,000 text files',
    chat,
    () => ({ messages: [user(times(10_000, (at) => ({ type: 'file', file: { filename: `${at}.txt`, file_data: 'data:text/plain;base64,QUJD' } })))] }),
  ],
  ['fields that nobody knows', chat, () => ({ messages: [user('x')], ...Object.fromEntries(times(9900, (at) => [`unknown_${at}`, { a: [at] }])) })],
  ['a field of 300,000 unknown values', chat, () => ({ messages: [user('x')], unknown: times(300_000, (at) => at) })],
  ['a message of 300,000 unknown values', chat, () => ({ messages: [{ ...user('x'), unknown: times(300_000, (at) => `v${at}`) }] })],
  ['a name of 20 MB', chat, () => ({ model: 'm'.repeat(20_000_000), messages: [user('x')] })],
  ['100,000 items', responses, () => ({ input: times(100_000, () => user('x')) })],
  ['100,000 parts', responses, () => ({ input: [user(times(100_000, () => ({ type: 'input_text', text: 'x' })))] })],
  [
    '50,000 calls of a history',
    responses,
    () => ({
      input: [
        user('x'),
        ...times(50_000, (at) => ({ type: 'function_call', call_id: `c${at}`, name: 't', arguments: '{}' })),
        ...times(50_000, (at) => ({ type: 'function_call_output', call_id: `c${at}`, output: 'x' })),
      ],
    }),
  ],
  ['10,000 tools', responses, () => ({ input: 'x', tools: times(10_000, (at) => ({ type: 'function', name: `t${at}`, parameters: {}, strict: false })) })],
  ['100,000 things to include', responses, () => ({ input: 'x', include: times(100_000, () => 'reasoning.encrypted_content') })],
  [
    'thoughts that lie',
    responses,
    () => ({ input: [user('x'), ...times(20_000, (at) => ({ type: 'reasoning', id: `r${at}`, summary: [], encrypted_content: 'A'.repeat(500) })), user('x')] }),
  ],
  ['100,000 messages', messages, () => ({ max_tokens: 9, messages: times(100_000, (at) => ({ role: at % 2 ? 'assistant' : 'user', content: 'x' })) })],
  ['100,000 parts', messages, () => ({ max_tokens: 9, messages: [user(times(100_000, () => text))] })],
  ['100,000 parts of the system', messages, () => ({ max_tokens: 9, system: times(100_000, () => text), messages: [user('x')] })],
  ['100,000 parts to count', `${messages}/count_tokens`, () => ({ messages: [user(times(100_000, () => text))] })],
  ['5 MB to count', `${messages}/count_tokens`, () => ({ messages: [user('aB3 '.repeat(1_300_000))] })],
  [
    '50,000 tool results',
    messages,
    () => ({
      max_tokens: 9,
      messages: [
        user('x'),
        { role: 'assistant', content: times(50_000, (at) => ({ type: 'tool_use', id: `c${at}`, name: 't', input: {} })) },
        user(times(50_000, (at) => ({ type: 'tool_result', tool_use_id: `c${at}`, content: 'x' }))),
      ],
    }),
  ],
  [
    'inputs of 300,000 values',
    messages,
    () => ({
      max_tokens: 9,
      messages: [
        user('x'),
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 't', input: { a: times(300_000, (at) => at) } }] },
        user([{ type: 'tool_result', tool_use_id: 'c', content: 'x' }]),
      ],
    }),
  ],
  [
    '100,000 documents',
    messages,
    () => ({ max_tokens: 9, messages: [user(times(50_000, () => ({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } })))] }),
  ],
  ['100,000 turns', gemini('generateContent'), () => ({ contents: times(100_000, () => ({ role: 'user', parts: [{ text: 'x' }] })) })],
  ['100,000 parts', gemini('generateContent'), () => ({ contents: [{ role: 'user', parts: times(100_000, () => ({ text: 'x' })) }] })],
  [
    '100,000 parts in the other spelling',
    gemini('generateContent'),
    () => ({ contents: [{ role: 'user', parts: times(50_000, () => ({ inline_data: { mime_type: 'image/png', data: 'AAAA' } })) }] }),
  ],
  [
    '10,000 functions',
    gemini('generateContent'),
    () => ({ contents: [{ role: 'user', parts: [{ text: 'x' }] }], tools: [{ functionDeclarations: times(10_000, (at) => ({ name: `t${at}` })) }] }),
  ],
  [
    '100,000 stop sequences',
    gemini('generateContent'),
    () => ({ contents: [{ role: 'user', parts: [{ text: 'x' }] }], generationConfig: { stopSequences: times(100_000, (at) => `s${at}`) } }),
  ],
  [
    '100,000 labels of 1 KB',
    gemini('generateContent'),
    () => ({ contents: [{ role: 'user', parts: [{ text: 'x' }] }], labels: Object.fromEntries(times(9999, (at) => [`k${at}`, 'v'.repeat(1000)])) }),
  ],
  ['100,000 inputs', `${root}/embeddings`, () => ({ model: 'vectors', input: times(100_000, () => 'x') })],
  ['900,000 token ids', `${root}/embeddings`, () => ({ model: 'vectors', input: times(900_000, (at) => at % 1000) })],
  ['256 inputs of 3,000 token ids', `${root}/embeddings`, () => ({ model: 'vectors', input: times(256, () => times(3000, (at) => at)) })],
  ['256 inputs of 100 KB', `${root}/embeddings`, () => ({ model: 'vectors', input: times(256, () => 'word '.repeat(20_000)) })],
  [
    '256 inputs of 100 KB that are embedded here',
    `${root}/embeddings`,
    () => ({ model: 'built-in-embedding', input: times(256, () => 'word '.repeat(20_000)) }),
  ],
  ['100,000 requests', gemini('batchEmbedContents', 'vectors'), () => ({ requests: times(100_000, () => ({ content: { parts: [{ text: 'x' }] } })) })],
  ['100,000 instances', gemini('predict', 'vectors'), () => ({ instances: times(100_000, () => ({ content: 'x' })) })],
  ['a content of 100,000 parts', gemini('embedContent', 'vectors'), () => ({ content: { parts: times(100_000, () => ({ text: 'x' })) } })],
  ['100,000 texts', `${root}/moderations`, () => ({ input: times(100_000, () => 'x') })],
  ['100,000 prompts', `${root}/completions`, () => ({ prompt: times(100_000, () => 'x') })],
  ['a text of 20 MB', `${root}/audio/speech`, () => ({ input: 'x'.repeat(20_000_000), voice: 'alloy' })],
  ['a prompt of 20 MB', `${root}/images/generations`, () => ({ prompt: 'x '.repeat(10_000_000) })],
  ['100,000 items', `${root}/conversations`, () => ({ items: times(100_000, () => user('x')) })],
  ['9,999 keys of metadata', `${root}/conversations`, () => ({ metadata: Object.fromEntries(times(9999, (at) => [`k${at}`, 'v'])) })],
  ['100,000 models', `/server/admin/users`, () => ({ email: 'a@b.example', models: times(100_000, (at) => `m${at}`) })],
];

const boundary = '----x';
const form = { 'content-type': `multipart/form-data; boundary=${boundary}` };
const field = (name: string, value: string, more = '') => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
const file = field('file', 'RIFF', '; filename="a.wav"');

/** Forms, where a recording is expected. */
const forms: readonly (readonly [string, () => string, Readonly<Record<string, string>>?])[] = [
  ['100,000 parts', () => `${field('x', 'y').repeat(100_000)}${file}--${boundary}--\r\n`],
  ['100,000 different parts', () => `${times(100_000, (at) => field(`x${at}`, 'y')).join('')}${file}--${boundary}--\r\n`],
  [
    '100,000 headers of a part',
    () => `--${boundary}\r\n${times(100_000, (at) => `x-${at}: y\r\n`).join('')}content-disposition: form-data; name="file"\r\n\r\nz\r\n--${boundary}--\r\n`,
  ],
  ['a name of 10 MB', () => `${field('n'.repeat(10_000_000), 'x')}${file}--${boundary}--\r\n`],
  ['a megabyte of quotes in a name', () => `${field('\\"'.repeat(500_000), 'x')}${file}--${boundary}--\r\n`],
  ['a prompt of 20 MB', () => `${file}${field('prompt', 'x '.repeat(10_000_000))}--${boundary}--\r\n`],
  ['no last boundary', () => `${file}${'x'.repeat(10_000_000)}`],
  ['almost boundaries', () => `${file}${`\r\n--${boundary.slice(0, -1)}`.repeat(2_000_000)}`],
  ['hyphens', () => `${file}${'-'.repeat(20_000_000)}`],
  ['boundaries and nothing else', () => `--${boundary}\r\n`.repeat(1_000_000)],
  ['dashes', () => `${'-'.repeat(20_000_000)}--${boundary}--`, { 'content-type': `multipart/form-data; boundary=${'-'.repeat(70)}` }],
  ['a boundary of 15 KB', () => '-'.repeat(10_000_000), { 'content-type': `multipart/form-data; boundary=${'-'.repeat(15_000)}` }],
];

/** A stream of a body in chunks of one byte. */
const byByte = (body: string) => () => {
  const bytes = Buffer.from(body);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      for (const stop = Math.min(at + 1000, bytes.length); at < stop; at++) controller.enqueue(bytes.subarray(at, at + 1));
      if (at === bytes.length) controller.close();
    },
  });
};

const list = (path: string, query: string): Omit<Attack, 'name'> => ({ path: `${path}?${query}`, method: 'GET' });

const others: readonly Attack[] = [
  { name: 'the same key 100,000 times', path: chat, body: () => `{${'"a":0,'.repeat(100_000)}"model":"x"}`, status: 400 },
  {
    name: '__proto__ in a body',
    path: chat,
    body: () => '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x","__proto__":{"a":1}}]}',
    status: 400,
  },
  {
    name: 'constructor and toString',
    path: chat,
    body: () =>
      spelled('messages', '[{"role":"user","content":"x","constructor":{"prototype":{"a":1}},"toString":1,"hasOwnProperty":2}]', { model: 'gpt-4o-mini' }),
    status: 200,
  },
  { name: '500,000 keys with escapes', path: chat, body: () => `{"a":{${times(9000, (at) => `"\\u0061${at}":0`).join(',')}},"model":"x"}`, status: 400 },
  { name: 'invalid UTF-8', path: chat, body: () => Buffer.concat([Buffer.from('{"model":"'), Buffer.alloc(20_000_000, 0xff), Buffer.from('"}')]), status: 400 },
  { name: 'UTF-16', path: chat, body: () => Buffer.from('{"model":"gpt-4o-mini"}'.repeat(100_000), 'utf16le'), status: 400 },
  { name: 'a bomb', path: chat, headers: { 'content-encoding': 'gzip' }, body: () => Buffer.alloc(1_000_000), status: 415 },
  { name: 'chunks of one byte', path: chat, body: byByte(JSON.stringify({ model: 'gpt-4o-mini', messages: [user('x'.repeat(300_000))] })), status: 200 },
  { name: 'chunks of one byte of nothing', path: chat, body: byByte(' '.repeat(300_000)), status: 400 },
  { name: 'a body of white space', path: chat, body: () => ' '.repeat(33_000_000), status: 400 },
  { name: 'a body that is too large', path: chat, body: () => 'x'.repeat(40_000_000), status: 413 },
  {
    name: '400 headers',
    path: chat,
    headers: Object.fromEntries(times(400, (at) => [`x-${at}`, 'y'])),
    body: () => ({ model: 'gpt-4o-mini', messages: [user('x')] }),
  },
  { name: 'headers of 100 KB', path: chat, headers: { 'x-a': 'y'.repeat(100_000) }, body: () => ({}) },
  {
    name: 'a type of 15 KB',
    path: chat,
    headers: { 'content-type': `application/json;${'a=b;'.repeat(3500)}` },
    body: () => ({ model: 'gpt-4o-mini', messages: [user('x')] }),
  },
  { name: 'targets of 15 KB', path: chat, headers: { 'x-dragoman-targets': 'm,'.repeat(7000) }, body: () => ({ model: 'gpt-4o-mini', messages: [user('x')] }) },
  {
    name: 'an idempotency key of 15 KB',
    path: chat,
    headers: { 'idempotency-key': 'k'.repeat(15_000) },
    body: () => ({ model: 'gpt-4o-mini', messages: [user('x')] }),
    status: 400,
  },
  {
    name: 'an idempotency key and 30 MB',
    path: chat,
    headers: { 'idempotency-key': 'heap' },
    body: () => ({ model: 'gpt-4o-mini', messages: [user('x'.repeat(30_000_000))] }),
  },
  { name: '7,000 parameters', ...list(users, 'a=b&'.repeat(3900)), status: 400 },
  { name: '100,000 parameters', ...list(users, 'a=b&'.repeat(100_000)) },
  { name: 'parameters full of percents', ...list(users, `a=${'%41'.repeat(5000)}`), status: 400 },
  { name: 'a search for percents', ...list(users, `search=${'%25'.repeat(5000)}`) },
  { name: 'a cursor that lies', ...list(users, `cursor=${Buffer.from(deep(5000)).toString('base64url')}`), status: 400 },
  { name: 'a cursor of another list', ...list('/server/admin/logs', `cursor=${'A'.repeat(15_000)}`), status: 400 },
  { name: 'a limit without end', ...list(users, `limit=${'9'.repeat(15_000)}`), status: 400 },
  { name: 'a filter of 15 KB', ...list('/server/admin/logs', `model=${'%_'.repeat(5000)}`) },
  { name: 'a response that is none', ...list(`${root}/responses/${'r'.repeat(4000)}`, ''), status: 404 },
  { name: 'items after an item that is none', ...list(`${root}/responses/resp_x/input_items`, `after=${'a'.repeat(15_000)}`) },
  { name: 'an address of 15 KB', ...list(`/server/gencompat/v1beta/models/${'a/'.repeat(7000)}`, '') },
  { name: 'an address of colons', path: `/server/gencompat/v1beta/models/${':'.repeat(15_000)}`, body: () => ({}), status: 404 },
];

/** What may be sent as a body, a header or an address to keep a server busy that is no schema. Where checks hold it is sent once more. */
export const hostileBodies: readonly Attack[] = [
  ...faces.flatMap(({ path, face, field: main, rest }) =>
    values.map(([name, json]) => ({ name: `${name} as ${main}, ${face}`, path, body: () => spelled(main, json(), rest) })),
  ),
  ...['guarded', 'judged'].flatMap((model) =>
    values.slice(-7).map(([name, json]) => ({
      name: `${name} as content to ${model}`,
      path: chat,
      body: () => spelled('messages', `[{"role":"user","content":${json()}}]`, { model }),
    })),
  ),
  ...heaps.flatMap(([name, path, more]) =>
    ['gpt-4o-mini', 'guarded', 'judged'].flatMap((model) => {
      const isGemini = path.includes('/models/');
      const isErrand = path.includes('vectors') || path.endsWith('/embeddings');
      if (model !== 'gpt-4o-mini' && (path.includes('/admin/') || path.includes('count') || (isErrand && model === 'judged'))) return [];
      const to = isErrand && model === 'guarded' ? 'guarded-vectors' : model;
      const asked = isGemini ? path.replace(isErrand ? 'vectors' : 'gpt-4o-mini', isErrand && model === 'gpt-4o-mini' ? 'vectors' : to) : path;
      const at = /[^/]*\/[^/]*$/.exec(path)![0];
      return [
        {
          name: `${name}, ${at} to ${to}`,
          path: asked,
          body: () => ({ ...(isGemini ? {} : { model: to }), ...more(), ...(isErrand && model === 'guarded' && !isGemini ? { model: to } : {}) }),
        },
      ];
    }),
  ),
  ...forms.map(([name, body, headers = form]) => ({ name: `${name}, a form`, path: `${root}/audio/transcriptions`, headers, body })),
  ...others,
];
