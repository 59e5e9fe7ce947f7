import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readdirSync, readFileSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { documentBytes, sendFiles } from '../support/documents.ts';
import { proves } from '../support/proves.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { docx, word, zip } from '../support/zip.ts';
import { slowness } from '../support/cpu-time.ts';

/*
 * Files that are made to harm whoever opens them. What each costs is measured from outside: time at the door, and memory of the process that converts.
 */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await send('warm.txt', 'a process waits from now on');
});
afterAll(() => server.close());

const send = (name: string, content: Uint8Array<ArrayBuffer> | string) => sendFiles(server, [[name, content]]);

function pdf(objects: readonly (string | Buffer)[]): Uint8Array<ArrayBuffer> {
  const pieces = [Buffer.from('%PDF-1.7\n')];
  for (const [at, object] of objects.entries()) pieces.push(Buffer.from(`${at + 1} 0 obj\n`), Buffer.from(object), Buffer.from('\nendobj\n'));
  pieces.push(Buffer.from('trailer << /Root 1 0 R >>\n%%EOF\n'));
  return new Uint8Array(Buffer.concat(pieces));
}

const stream = (dictionary: string, content: Uint8Array) =>
  Buffer.concat([Buffer.from(`<< ${dictionary} /Length ${content.length} >>\nstream\n`), content, Buffer.from('\nendstream')]);

/** The head of a PNG of that size, and nothing behind it. */
function hugePng(width: number, height: number): Uint8Array<ArrayBuffer> {
  const head = Buffer.alloc(25);
  head.writeUInt32BE(13, 0);
  head.write('IHDR', 4);
  head.writeUInt32BE(width, 8);
  head.writeUInt32BE(height, 12);
  head.set([8, 2, 0, 0, 0], 16);
  head.writeUInt32BE(crc32(head.subarray(4, 21)), 21);
  return new Uint8Array(
    Buffer.concat([Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1'), head, Buffer.from([0, 0, 0, 0]), Buffer.from('IDAT'), Buffer.alloc(20)]),
  );
}

const zeros = (bytes: number) => new Uint8Array(bytes);
const page = (count: number) => [
  '<< /Type /Catalog /Pages 2 0 R >>',
  `<< /Type /Pages /Kids [${Array.from({ length: count }, () => '3 0 R').join(' ')}] /Count ${count} >>`,
];

/** Each with the status it deserves. */
const bombs: Readonly<Record<string, readonly [name: string, make: () => Uint8Array<ArrayBuffer> | string, status: number | readonly number[]]>> = {
  'an archive of 300 MB of zeros': ['bomb.docx', () => docx(zeros(300 * 2 ** 20)), 422],
  'one whose directory says 10 bytes': ['bomb.docx', () => docx('<a/>', [{ name: 'word/a.xml', content: zeros(200 * 2 ** 20), size: 10 }]), 422],
  'one of 5,000 entries': ['bomb.xlsx', () => zip(Array.from({ length: 5000 }, (_, at) => ({ name: `x${at}`, content: zeros(1) }))), 422],
  'one whose entries overlap': [
    'bomb.docx',
    () =>
      docx(
        '<a/>',
        Array.from({ length: 50 }, (_, at) => ({ name: `word/${at}.xml`, content: zeros(1_000_000), at: 0 })),
      ),
    422,
  ],
  'one that is encrypted': ['bomb.docx', () => docx('<a/>', [{ name: 'x', content: zeros(10), flags: 1 }]), 422],
  'one in another, ten deep': [
    'bomb.docx',
    () => {
      let inner = zip([{ name: 'x', content: zeros(1_000_000) }]);
      for (let at = 0; at < 10; at++) inner = zip([{ name: 'x.zip', content: inner }]);
      return inner;
    },
    415,
  ],
  'a billion laughs': [
    'laughs.docx',
    () =>
      docx(
        `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "ha">${Array.from({ length: 30 }, (_, at) => `<!ENTITY a${at} "${`&a${at === 0 ? '' : at - 1};`.repeat(10)}">`).join('')}]><w:document xmlns:w="${word}"><w:body><w:p><w:r><w:t>&a29;</w:t></w:r></w:p></w:body></w:document>`,
      ),
    422,
  ],
  'XML nested 200,000 deep': ['deep.docx', () => docx(`<w:document xmlns:w="${word}"><w:body>${'<w:tbl><w:tr><w:tc>'.repeat(66_000)}`), 422],
  'a million elements': ['many.docx', () => docx(`<w:document xmlns:w="${word}"><w:body>${'<w:p/>'.repeat(1_000_000)}</w:body></w:document>`), 422],
  'a web page nested 100,000 deep': ['deep.html', () => `<html><body>${'<div>'.repeat(100_000)}`, 422],
  'a mail nested 1,000 deep': [
    'deep.eml',
    () =>
      `From: a@b.c\r\nDate: x\r\nMIME-Version: 1.0\r\n${Array.from({ length: 1000 }, (_, at) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}\r\n`).join('')}`,
    422,
  ],
  'a PDF of 100,000 objects': ['many.pdf', () => pdf([...page(1), '<< /Type /Page /Parent 2 0 R >>', ...Array.from({ length: 100_000 }, () => '<< >>')]), 422],
  'a PDF of 10,000 pages': ['long.pdf', () => pdf([...page(10_000), '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>']), 422],
  'a PDF whose tree of pages has itself for a child': [
    'tree.pdf',
    () => pdf(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [2 0 R] /Count 1000000000 >>']),
    422,
  ],
  'a PDF whose text unpacks to 300 MB': [
    'text.pdf',
    () =>
      pdf([
        ...page(1),
        '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>',
        stream('/Filter /FlateDecode', deflateSync(zeros(300 * 2 ** 20))),
      ]),
    422,
  ],
  'a PDF that was packed twice': [
    'twice.pdf',
    () =>
      pdf([
        ...page(1),
        '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>',
        stream('/Filter [/FlateDecode /FlateDecode]', deflateSync(deflateSync(zeros(300 * 2 ** 20)))),
      ]),
    422,
  ],
  'an image of 65,535 by 65,535': ['huge.png', () => hugePng(65_535, 65_535), 422],
  'a GIF of 60,000 by 60,000': [
    'huge.gif',
    () => new Uint8Array(Buffer.concat([Buffer.from('GIF89a'), Buffer.from([0x60, 0xea, 0x60, 0xea]), Buffer.alloc(60)])),
    422,
  ],
  'RTF nested 100,000 deep': ['deep.rtf', () => `{\\rtf1 ${'{'.repeat(100_000)}x`, [200, 422]],
};

/** The processes that convert for this one. */
function converters(): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const isOurs = Number(readFileSync(`/proc/${name}/stat`, 'latin1').split(') ')[1]!.split(' ')[1]) === process.pid;
      return isOurs && readFileSync(`/proc/${name}/cmdline`, 'latin1').includes('conversion-worker') ? [Number(name)] : [];
    } catch {
      return []; // it ended
    }
  });
}

/** @returns resident bytes, and seconds of computing */
function usageOf(pid: number): { readonly bytes: number; readonly seconds: number } {
  try {
    const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ').slice(11, 13).map(Number);
    return { bytes: Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4096, seconds: (user + system) / 100 };
  } catch {
    return { bytes: 0, seconds: 0 };
  }
}

/** Sees how much more the converting processes hold, and how long the one computes that computes most. */
function watchConverters() {
  const sum = () => converters().map(usageOf);
  const before = sum();
  const held = before.reduce((all, { bytes }) => all + bytes, 0);
  let [most, seconds] = [0, 0];
  const look = () => {
    const now = sum();
    most = Math.max(
      most,
      now.reduce((all, { bytes }) => all + bytes, 0),
    );
    seconds = Math.max(seconds, ...now.map((one) => one.seconds));
  };
  const timer = setInterval(look, 20);
  return {
    stop() {
      clearInterval(timer);
      return { grown: most - held, seconds };
    },
  };
}

describe('a bomb is refused in a moment, and takes little memory', () => {
  test.each(Object.entries(bombs).map(([what, [name, make, status]]) => [what, name, make, status] as const))(
    proves(['U-02', 'U-03', 'U-04', 'U-05'], '%s'),
    { timeout: 120_000 },
    async (_, name, make, status) => {
      const content = make();
      await new Promise((resolve) => setTimeout(resolve, 500)); // the process that waits has started
      const watch = watchConverters();
      const { http, body } = await send(name, content);
      const { grown, seconds } = watch.stop();
      expect([http, body.response]).toEqual([typeof status === 'number' ? status : expect.toBeOneOf([...status]), expect.any(String)]);
      expect(grown).toBeLessThan(150 * 2 ** 20);
      expect(seconds / slowness()).toBeLessThan(2);
    },
  );
});

describe('what is in a document reaches for nothing', () => {
  test(proves('U-05', 'no entity, picture, frame or file that a document names is fetched'), { timeout: 120_000 }, async () => {
    let hits = 0;
    const canary = createServer((_, answer) => {
      hits++;
      answer.end('canary');
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => canary.once('listening', resolve));
    const url = `http://127.0.0.1:${(canary.address() as AddressInfo).port}/x`;
    try {
      const external = docx(
        `<?xml version="1.0"?><!DOCTYPE a SYSTEM "${url}"><w:document xmlns:w="${word}"><w:body><w:p><w:r><w:t>text</w:t></w:r></w:p></w:body></w:document>`,
      );
      expect((await send('external.docx', external)).http).toBeOneOf([200, 422]);
      const file = docx(
        `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><w:document xmlns:w="${word}"><w:body><w:p><w:r><w:t>&x;</w:t></w:r></w:p></w:body></w:document>`,
      );
      expect((await send('file.docx', file)).http).toBe(422);
      const html = await send('page.html', `<html><img src="${url}"><iframe src="${url}"></iframe><link rel=stylesheet href="${url}"><p>text</p></html>`);
      expect([html.http, html.body.text.includes('text')]).toEqual([200, true]);
      const remote = pdf([
        ...page(1),
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /AA << /O << /S /URI /URI (${url}) >> >> /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>`,
        stream('', Buffer.from('BT /F 9 Tf 9 9 Td (text) Tj ET')),
        '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
      ]);
      expect((await send('remote.pdf', remote)).body.text).toBe('text');
      expect(hits).toBe(0);
    } finally {
      canary.close();
    }
  });
});

test(proves('U-11', 'a process that is killed while it converts costs its own file only'), { timeout: 120_000 }, async () => {
  const scan = documentBytes('scan.png').then((content) => send('scan.png', content));
  const killed = (async () => {
    for (;;) {
      const busy = converters().find((pid) => usageOf(pid).seconds > 0.5);
      if (busy !== undefined) return process.kill(busy, 'SIGSEGV');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  await killed;
  const { http, body } = await scan;
  expect([http, body.response]).toEqual([422, 'file (scan.png): The file cannot be read: the process that read it ended.']);
  expect((await send('next.txt', 'the next one')).body.text).toBe('the next one');
});
