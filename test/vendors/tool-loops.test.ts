import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { agentOf, type AgentTool } from '../support/agents.ts';
import { faces } from '../support/all-faces.ts';
import { modelNames, startVendors, type Vendors } from '../support/fakes/vendors/index.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const weather: AgentTool = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] },
};
const called = [{ name: 'weather', arguments: { city: 'Paris', days: 1 } }];

const ways = faces.flatMap((face) => [false, true].map((stream) => ({ face, stream, how: stream ? 'streamed' : 'whole' })));

describe.each([
  ['a vendor at its own address, which is asked right the first time', true],
  ['a vendor at an address that nobody knows, which teaches by its refusals', false],
])('%s', (_, known) => {
  let vendors: Vendors;
  let server: TestServer;

  beforeAll(async () => {
    vendors = await startVendors();
    server = await startTestServer({ yaml: known ? vendors.yaml : vendors.unknownYaml });
  });
  afterAll(async () => {
    await server.close();
    await vendors.close();
  });
  afterEach(() => vendors.reset());

  describe.each(modelNames)('%s', (model) => {
    for (const { face, stream, how } of ways)
      test(`${face}, ${how}: two turns, each with a call and its result`, async () => {
        const agent = agentOf(server, face, { model, stream, tools: [weather] });
        for (const turn of ['first', 'second']) {
          const asked = await agent.say(`In the ${turn} turn, use the tool.`);
          if (asked.status !== 200) expect.fail(`${turn} call: ${asked.status} ${asked.raw}`);
          expect(asked.calls).toMatchObject(called);
          const answered = await agent.give(`${turn} 1.10 sunny`);
          if (answered.status !== 200) expect.fail(`${turn} answer: ${answered.status} ${answered.raw}`);
          expect(answered.text).toMatch(new RegExp(`^The tool said: .*${turn} 1.10 sunny`));
        }
        const refused = vendors.requests.filter(({ status }) => status !== 200).map(({ rule, message }) => `${rule}: ${message}`);
        if (known && refused.length > 0) expect.fail(`refused first: ${refused.join('; ')}`);
        expect(vendors.mishaps).toEqual([]);
      });
  });
});
