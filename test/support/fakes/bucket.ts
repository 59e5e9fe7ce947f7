import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isSigned } from './signed.ts';

/** A bucket that others fill: it lists objects and gives them to whoever signs, and refuses everybody else. */
export interface FakeBucket {
  readonly port: number;
  readonly objects: Map<string, string>;
  /** Objects of one list. */
  page: number;
  /** Answers before anything else, where it gives something. */
  instead: ((path: string, query: URLSearchParams) => { readonly status: number; readonly body?: string } | undefined) | undefined;
  /** Keys whose content was asked for. */
  readonly asked: string[];
  refused: number;
  close(): Promise<void>;
}

const escaped = (text: string) => encodeURIComponent(text).replaceAll('%20', '+').replaceAll('%2F', '/');

/** Listens on an address of this machine. The name of the bucket is `files`. */
export async function openBucket(address: string): Promise<FakeBucket> {
  const objects = new Map<string, string>();
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://x');
    const key = decodeURIComponent(url.pathname.replace(/^\/files\/?/, ''));
    if (!isSigned(request)) {
      fake.refused++;
      return response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>');
    }
    const other = fake.instead?.(key, url.searchParams);
    if (other) return response.writeHead(other.status).end(other.body);
    if (key === '') return response.writeHead(200, { 'content-type': 'application/xml' }).end(listed(url.searchParams));
    fake.asked.push(key);
    const content = objects.get(key);
    return content === undefined ? response.writeHead(404).end() : response.writeHead(200).end(content);
  });
  const listed = (query: URLSearchParams) => {
    const [prefix, after] = [query.get('prefix') ?? '', query.get('continuation-token') ?? ''];
    const all = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).toSorted();
    const part = all.slice(0, fake.page);
    const contents = part.map((key) => {
      const content = objects.get(key)!;
      return `<Contents><Key>${escaped(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;${Buffer.from(content).toString('hex').slice(0, 40)}${content.length}&quot;</ETag><Size>${Buffer.byteLength(content)}</Size></Contents>`;
    });
    const more = part.length < all.length ? `<NextContinuationToken>${part.at(-1)!}</NextContinuationToken>` : '';
    return `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType><IsTruncated>${more !== ''}</IsTruncated>${contents.join('')}${more}</ListBucketResult>`;
  };
  server.listen(0, address);
  await once(server, 'listening');
  const fake: FakeBucket = {
    port: (server.address() as AddressInfo).port,
    objects,
    page: 2,
    instead: undefined,
    asked: [],
    refused: 0,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return fake;
}
