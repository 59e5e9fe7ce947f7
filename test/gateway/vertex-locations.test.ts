import { expect, test } from 'vitest';
import { askWith } from '../support/members.ts';
import { scriptedHosts } from '../support/scripted-hosts.ts';

const hosts = ['aiplatform.googleapis.com', 'aiplatform.us.rep.googleapis.com', 'aiplatform.eu.rep.googleapis.com', 'me-central2-aiplatform.googleapis.com'];
const places = ['global', 'us', 'eu', 'me-central2'];

const provider = (place: string) => `  p-${place}:
    dialect: gemini
    kind: vertex
    project: shop
    baseUrl: "https://{region}-aiplatform.googleapis.com/v1"
    credentials: { accessToken: t }
    regions: [${place}]
`;

const { upstream, server } = await scriptedHosts(
  hosts,
  () =>
    `providers:\n${places.map(provider).join('')}models:\n${places.map((place) => `  m-${place}: { targets: [{ provider: p-${place}, model: gemini-2.5-flash }] }\n`).join('')}`,
);

test.each(places.map((place, at) => [place, hosts[at]!] as const))('the region %s of the cloud platform is asked at %s', async (place, host) => {
  const { status } = await askWith(server, server.key, { model: `m-${place}`, messages: [{ role: 'user', content: 'hi' }] });
  expect([status, upstream.requests.map(({ headers, path }) => [headers['host'], path])]).toEqual([
    200,
    [[host, `/v1/projects/shop/locations/${place}/publishers/google/models/gemini-2.5-flash:generateContent`]],
  ]);
});
