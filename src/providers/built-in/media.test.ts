import { describe, expect, test } from 'vitest';
import { describeMedia, pictureIn } from './media.ts';

const base64 = (...bytes: (number | string)[]) =>
  Buffer.concat(bytes.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from([part])))).toString('base64');
const zeros = (count: number) => '\0'.repeat(count);
const jpeg = (before: string) => base64(0xff, 0xd8, before, '\xff\xc0\x00\x11\x08', '\x01\x02', '\x03\x04', zeros(20));

describe('the size of a picture', () => {
  test.each([
    ['image/png', 640, 480, base64('\x89PNG\r\n\x1a\n', '\0\0\0\rIHDR', '\0\0\x02\x80', '\0\0\x01\xe0', zeros(10))],
    ['image/gif', 258, 3, base64('GIF89a', '\x02\x01', '\x03\x00', zeros(10))],
    ['image/webp', 300, 200, base64('RIFF', zeros(4), 'WEBPVP8X', zeros(8), '\x2b\x01\x00', '\xc7\x00\x00', zeros(4))],
    ['image/webp', 320, 240, base64('RIFF', zeros(4), 'WEBPVP8 ', zeros(7), '\x9d\x01\x2a', '\x40\x01', '\xf0\x00', zeros(4))],
    ['image/webp', 5, 9, base64('RIFF', zeros(4), 'WEBPVP8L', zeros(4), '\x2f', '\x04\x00\x02\x00', zeros(8))],
    ['image/jpeg', 0x304, 0x102, jpeg('')],
    ['image/jpeg', 0x304, 0x102, jpeg(`\xff\xe1\xff\xfe${zeros(0xfffc)}\xff\xfe\x00\x04ab`)],
  ])('%s of %i × %i is read out of its header', (mediaType, width, height, data) => expect(pictureIn(data)).toEqual({ mediaType, width, height }));

  test.each([
    '',
    'AAAA',
    'not base64 at all!',
    base64('\x89PNG\r\n\x1a\n'),
    base64('RIFF', zeros(4), 'WEBP'),
    base64(0xff, 0xd8, 0xff),
    base64(0xff, 0xd8, zeros(50)),
    base64(0xff, 0xd8, '\xff'.repeat(1000)),
    base64('GIF89a'),
  ])('is unknown for %j', (data) => expect(pictureIn(data)).toBeUndefined());
});

describe('media in words', () => {
  test.each([
    [{ kind: 'image', base64: 'AAAA', mediaType: 'image/tiff' }, 'a TIFF image, 3 bytes'],
    [{ kind: 'image', base64: 'AA==' }, 'an image, 1 byte'],
    [{ kind: 'audio', base64: 'A'.repeat(2_000_000), mediaType: 'audio/mpeg; rate=1' }, 'an MPEG sound, 1.5 MB'],
    [{ kind: 'file', fileId: 'file_1', name: 'a.txt', mediaType: 'text/plain' }, 'a PLAIN file “a.txt” among the stored files'],
    [{ kind: 'image', url: 'not an address' }, 'an image at an address that I do not fetch'],
    [{ kind: 'video', url: 'https://user:pass@example.org/v.mp4' }, 'a video at example.org, which I do not fetch'],
  ] as const)('%j is %s', (part, words) => expect(describeMedia({ type: 'media', ...part })).toBe(words));
});
