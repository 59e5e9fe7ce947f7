/** What becomes of each feature between each interface and each wire, found by asking: what arrived, what came back, and which warnings were given. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { agentOf, type Said } from '../support/agents.ts';
import { faces, type Face } from '../support/all-faces.ts';
import { startVendors, type Vendors } from '../support/fakes/vendors/index.ts';
import type { WireName } from '../support/fakes/vendors/vendor.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { answerCells, answerFeatures } from './answers.ts';
import { spoken, wires, type Cell, type Outcome } from './cells.ts';
import { features, site, siteFiles, type Feature } from './features.ts';

const usual: Readonly<Record<WireName, string>> = {
  chat: 'gpt-4o',
  responses: 'gpt-4o-on-responses',
  messages: 'claude-opus-4-6',
  gemini: 'gemini-3-flash-preview',
};
/** @param known are the vendors at their own addresses, or at some that nobody knows? */
export async function matrix({ known = true, stream = false } = {}): Promise<readonly Cell[]> {
  const vendors = await startVendors();
  const files = await openSite();
  const server = await startTestServer({ yaml: (known ? vendors.yaml : vendors.unknownYaml).replace('outbound: { ', `outbound: { allow: ["${files.url}"], `) });
  const cells: Cell[] = [];
  for (const feature of features.map((one) => at(files.url, one)))
    for (const face of faces)
      for (const wire of wires) cells.push({ feature: feature.name, face, wire, ...(await tried({ server, vendors, stream }, feature, face, wire)) });
  await server.close();
  await vendors.close();
  files.close();
  return [...cells, ...(await answerCells())];
}

/** A site with files that users name by their addresses. */
async function openSite() {
  const server = createServer(({ url = '' }, response) => {
    const [type, base64] = siteFiles[url] ?? ['text/plain', ''];
    response.writeHead(base64 === '' ? 404 : 200, { 'content-type': type }).end(Buffer.from(base64, 'base64'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() };
}

/** The feature, asked for with the address of the site. */
const at = (url: string, { asked, ...feature }: Feature): Feature => ({
  ...feature,
  asked: JSON.parse(JSON.stringify(asked).replaceAll(site, url)) as Feature['asked'],
});

/** What should not be: lost without a word, or refused though the client spoke another dialect than the provider's. */
export const wrongIn = (cells: readonly Cell[]): readonly Cell[] =>
  cells.filter(({ outcome, face, wire }) => outcome === 'lost' || (outcome === 'broken' && spoken[face] !== wire));

/** `feature, face → wire` */
export const placeOf = ({ feature, face, wire }: Cell): string => `${feature}, ${face} → ${wire}`;

interface Asking {
  readonly server: TestServer;
  readonly vendors: Vendors;
  readonly stream: boolean;
}

async function tried(asking: Asking, feature: Feature, face: Face, wire: WireName): Promise<Pick<Cell, 'outcome' | 'because'>> {
  if (feature.asked[face] === undefined || feature.wires?.includes(wire) === false) return { outcome: 'unspeakable', because: '' };
  const { vendors } = asking;
  const said = await asked(asking, feature, face, wire, {});
  const arrived = vendors.requests.at(-1);
  const isThere = feature.arrives === undefined || (arrived?.wire !== undefined && Boolean(feature.arrives[arrived.wire]?.(arrived.body, arrived.text, face)));
  const isBack = feature.comes === undefined || (said.status === 200 && Boolean(feature.comes(said, face, wire)));
  if (said.status === 200 && isThere && isBack) return { outcome: spoken[face] === wire ? 'works' : 'translated', because: said.warnings };
  if (said.status === 200) {
    const missing = `${isThere ? '' : 'not in the request '}${isBack ? '' : 'not in the answer'}`;
    if (!feature.word.test(said.warnings)) return { outcome: 'lost', because: `${missing}; warnings: ${said.warnings}` };
    const { status } = await asked(asking, feature, face, wire, { 'x-dragoman-strict': 'true' });
    return status === 400
      ? { outcome: 'said', because: said.warnings }
      : { outcome: 'lost', because: `strict is answered with ${status}; warnings: ${said.warnings}` };
  }
  const isOwn = vendors.requests.every(({ status }) => status === 200);
  return { outcome: isOwn && said.status < 502 && feature.word.test(said.raw) ? 'said' : 'broken', because: shortened(said) };
}

/** The last answer. */
async function asked(
  { server, vendors, stream }: Asking,
  feature: Feature,
  face: Face,
  wire: WireName,
  headers: Readonly<Record<string, string>>,
): Promise<Said> {
  vendors.reset();
  const { text = 'good day', ...members } = feature.asked[face];
  const model = feature.models?.[wire] ?? usual[wire];
  const agent = agentOf(server, face, {
    model,
    stream,
    stored: feature.stored ?? false,
    tools: [],
    headers,
    fields: (turns) => bodyOf(face, stream, members, turns, model),
  });
  const said = await agent.say(text);
  return feature.loop && said.status === 200 ? agent.give(...said.calls.map((_, at) => `result ${at}`)) : said;
}

const shortened = ({ status, raw }: Said): string => `${status} ${raw.replaceAll(/\s+/g, ' ').slice(0, 200)}`;

// oxlint-disable-next-line typescript/no-explicit-any -- bodies of four dialects
type Any = any;

/** The body of an interface, with the members of a feature where they belong. */
function bodyOf(
  face: Face,
  stream: boolean,
  { turns = [], system, config, textFormat, textVerbosity, ...more }: Any,
  said: readonly Any[],
  model: string,
): Any {
  const all = turns.length > 0 ? [...turns, ...said.slice(1)] : said;
  switch (face) {
    case 'chat':
      return { model, stream, messages: [...(system ? [{ role: 'system', content: system }] : []), ...all], ...more };
    case 'responses': {
      const text = { ...(textFormat ? { format: textFormat } : {}), ...(textVerbosity ? { verbosity: textVerbosity } : {}) };
      return { model, stream, input: all, ...(system ? { instructions: system } : {}), ...(Object.keys(text).length > 0 ? { text } : {}), ...more };
    }
    case 'messages':
      return { model, stream, max_tokens: 1000, messages: all, ...(system ? { system } : {}), ...more };
    case 'gencompat':
      return {
        contents: all,
        ...(system ? { systemInstruction: { parts: [{ text: system }] } } : {}),
        ...(config ? { generationConfig: config } : {}),
        ...more,
      };
    default:
      return face satisfies never;
  }
}

// ——— the page ———

const letters: Readonly<Record<Face, string>> = { chat: 'C', responses: 'R', messages: 'M', gencompat: 'G' };
const words: readonly (readonly [Outcome, string])[] = [
  ['works', 'works'],
  ['translated', 'translated'],
  ['said', 'warned'],
  ['lost', 'lost'],
  ['broken', 'refused'],
];

/** The table as Markdown. */
export function pageOf(cells: readonly Cell[]): string {
  const cellOf = (feature: string, wire: WireName) =>
    words
      .flatMap(([outcome, word]) => {
        const found = cells.filter((cell) => cell.feature === feature && cell.wire === wire && cell.outcome === outcome);
        return found.length > 0 ? [`${word} ${found.map(({ face }) => letters[face]).join(' ')}`] : [];
      })
      .join(' · ');
  const table = (rows: readonly { readonly name: string }[]) =>
    ['| feature | chat | responses | messages | gemini |', '|---|---|---|---|---|']
      .concat(rows.map(({ name }) => `| ${[name, ...wires.map((wire) => cellOf(name, wire))].join(' | ')} |`))
      .join('\n');
  return `# Feature matrix

How each feature maps from client API to provider API. This page is written by \`npm run matrix\`: each cell is a call against the scripted vendors of \`test/support/fakes/vendors\`, and says what arrived there, what came back and which warnings were given. \`test/matrix\` holds the calls; it asks all of them streamed, too, with the same outcomes, and at addresses that nobody knows, where nothing is lost either.

Interfaces: **C** chat completions, **R** responses, **M** messages, **G** gencompat. An interface or a wire that has no words for a feature is not named. Where nothing else is said, the providers are OpenAI (chat: gpt-4o; responses: gpt-4o or gpt-5), Anthropic (claude-opus-4-6) and Google (gemini-3-flash-preview).

- **works**: the interface is the provider's own, and the feature arrives as the client wrote it.
- **translated**: it arrives, or has its effect, in the words of the provider.
- **warned**: it is not possible there. The answer says so in \`x-dragoman-warnings\`; with \`x-dragoman-strict: true\`, or where nothing could be answered without it, it is a 400 that names the field.
- **refused**: the provider refuses what the client wrote in the provider's own words.
${cells.some(({ outcome }) => outcome === 'lost') ? '- **lost**: it does not arrive, and nothing says so.\n' : ''}
## What a client asks for

${table(features)}

## What a provider answers

Each cell is an answer of the wire, and what the interface shows of it.

${table(answerFeatures)}

## The same on every wire

The gateway itself keeps responses and conversations, runs responses in the background, tries other targets, and counts the cost of an answer: its tokens, what was written to a cache, the service tier that answered, and searches that the provider bills. \`count_tokens\` and \`:countTokens\` ask Anthropic and Gemini; elsewhere they are estimates.

\`GET /models/{id}\` says of one model which fields of a request its targets carry, translate or ignore.
`;
}
