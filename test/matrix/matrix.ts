/** What becomes of each feature between each interface and each wire, found by asking: what arrived, what came back, and which warnings were given. */
import { agentOf, type Said } from '../support/agents.ts';
import { faces, type Face } from '../support/all-faces.ts';
import { startVendors, type Vendors } from '../support/fakes/vendors/index.ts';
import type { WireName } from '../support/fakes/vendors/vendor.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { features, type Feature } from './features.ts';

/** `said`: not possible there, and a warning or a refusal names it. `lost`: nothing says that it is not there. `broken`: the provider refused. */
export type Outcome = 'works' | 'translated' | 'said' | 'lost' | 'broken' | 'unspeakable';

export interface Cell {
  readonly feature: string;
  readonly face: Face;
  readonly wire: WireName;
  readonly outcome: Outcome;
  /** What was seen. */
  readonly because: string;
}

const wires: readonly WireName[] = ['chat', 'responses', 'messages', 'gemini'];
const usual: Readonly<Record<WireName, string>> = {
  chat: 'gpt-4o',
  responses: 'gpt-4o-on-responses',
  messages: 'claude-opus-4-6',
  gemini: 'gemini-3-flash-preview',
};
const spoken: Readonly<Record<Face, WireName>> = { chat: 'chat', responses: 'responses', messages: 'messages', gencompat: 'gemini' };

export async function matrix(): Promise<readonly Cell[]> {
  const vendors = await startVendors();
  const server = await startTestServer({ yaml: vendors.yaml });
  const cells: Cell[] = [];
  for (const feature of features)
    for (const face of faces)
      for (const wire of wires) cells.push({ feature: feature.name, face, wire, ...(await tried(server, vendors, feature, face, wire)) });
  await server.close();
  await vendors.close();
  return cells;
}

/** What should not be: lost without a word, or refused though the client spoke another dialect than the provider's. */
export const wrongIn = (cells: readonly Cell[]): readonly Cell[] =>
  cells.filter(({ outcome, face, wire }) => outcome === 'lost' || (outcome === 'broken' && spoken[face] !== wire));

/** `feature, face → wire` */
export const placeOf = ({ feature, face, wire }: Cell): string => `${feature}, ${face} → ${wire}`;

async function tried(server: TestServer, vendors: Vendors, feature: Feature, face: Face, wire: WireName): Promise<Pick<Cell, 'outcome' | 'because'>> {
  if (feature.asked[face] === undefined || feature.wires?.includes(wire) === false) return { outcome: 'unspeakable', because: '' };
  const said = await asked(server, vendors, feature, face, wire, {});
  const arrived = vendors.requests.at(-1);
  const isThere = feature.arrives === undefined || (arrived?.wire !== undefined && Boolean(feature.arrives[arrived.wire]?.(arrived.body, arrived.text, face)));
  const isBack = feature.comes === undefined || (said.status === 200 && Boolean(feature.comes(said, face)));
  if (said.status === 200 && isThere && isBack) return { outcome: spoken[face] === wire ? 'works' : 'translated', because: said.warnings };
  if (said.status === 200) {
    const missing = `${isThere ? '' : 'not in the request '}${isBack ? '' : 'not in the answer'}`;
    if (!feature.word.test(said.warnings)) return { outcome: 'lost', because: `${missing}; warnings: ${said.warnings}` };
    const { status } = await asked(server, vendors, feature, face, wire, { 'x-dragoman-strict': 'true' });
    return status === 400
      ? { outcome: 'said', because: said.warnings }
      : { outcome: 'lost', because: `strict is answered with ${status}; warnings: ${said.warnings}` };
  }
  const isOwn = vendors.requests.every(({ status }) => status === 200);
  return { outcome: isOwn && said.status < 502 && feature.word.test(said.raw) ? 'said' : 'broken', because: shortened(said) };
}

/** The last answer. */
async function asked(
  server: TestServer,
  vendors: Vendors,
  feature: Feature,
  face: Face,
  wire: WireName,
  headers: Readonly<Record<string, string>>,
): Promise<Said> {
  vendors.reset();
  const { text = 'good day', ...members } = feature.asked[face];
  const model = feature.models?.[wire] ?? usual[wire];
  const agent = agentOf(server, face, { model, stream: false, tools: [], headers, fields: (turns) => bodyOf(face, members, turns, model) });
  const said = await agent.say(text);
  return feature.loop && said.status === 200 ? agent.give(...said.calls.map((_, at) => `result ${at}`)) : said;
}

const shortened = ({ status, raw }: Said): string => `${status} ${raw.replaceAll(/\s+/g, ' ').slice(0, 200)}`;

// oxlint-disable-next-line typescript/no-explicit-any -- bodies of four dialects
type Any = any;

/** The body of an interface, with the members of a feature where they belong. */
function bodyOf(face: Face, { turns = [], system, config, textFormat, textVerbosity, ...more }: Any, said: readonly Any[], model: string): Any {
  const all = turns.length > 0 ? [...turns, ...said.slice(1)] : said;
  switch (face) {
    case 'chat':
      return { model, messages: [...(system ? [{ role: 'system', content: system }] : []), ...all], ...more };
    case 'responses': {
      const text = { ...(textFormat ? { format: textFormat } : {}), ...(textVerbosity ? { verbosity: textVerbosity } : {}) };
      return { model, input: all, ...(system ? { instructions: system } : {}), ...(Object.keys(text).length > 0 ? { text } : {}), ...more };
    }
    case 'messages':
      return { model, max_tokens: 1000, messages: all, ...(system ? { system } : {}), ...more };
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
  ['said', 'said'],
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
  const rows = features.map(({ name }) => `| ${[name, ...wires.map((wire) => cellOf(name, wire))].join(' | ')} |`);
  return `# Features, interfaces and wires

What becomes of a feature between an interface of Dragoman and the wire of a provider. This page is written by \`npm run matrix\`: each cell is a call against the scripted vendors of \`test/support/fakes/vendors\`, and says what arrived there, what came back and which warnings were given. \`test/matrix\` holds the calls.

Interfaces: **C** chat completions, **R** responses, **M** messages, **G** gencompat. An interface that has no words for a feature is not named. Where nothing else is said, the providers are OpenAI (chat: gpt-4o; responses: gpt-4o or gpt-5), Anthropic (claude-opus-4-6) and Google (gemini-3-flash-preview).

- **works**: the interface is the provider's own, and the feature arrives as the client wrote it.
- **translated**: it arrives, or has its effect, in the words of the provider.
- **said**: it is not possible there. The answer says so in \`x-dragoman-warnings\`; with \`x-dragoman-strict: true\`, or where nothing could be answered without it, it is a 400 that names the field.
- **refused**: the provider refuses what the client wrote in the provider's own words.
${cells.some(({ outcome }) => outcome === 'lost') ? '- **lost**: it does not arrive, and nothing says so.\n' : ''}
| feature | chat | responses | messages | gemini |
|---|---|---|---|---|
${rows.join('\n')}
`;
}
