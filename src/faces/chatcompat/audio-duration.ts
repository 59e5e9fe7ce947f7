/** Bytes a second of sound that is compressed as speech is, 64 kbit/s, and the most that sound has which is not compressed. */
const compressed = 8000;
const most = 1_536_000;
/** Bytes at the beginning of a WAV in which its format is looked for: recorders write other chunks before it. */
const headBytes = 16_384;

/** About how many seconds a file of sound lasts: by its head where it is a WAV, else by its size. */
export async function audioSeconds(file: Blob): Promise<number> {
  const rate = bytesPerSecond(Buffer.from(await file.slice(0, headBytes).arrayBuffer()));
  return file.size / (rate === undefined ? compressed : Math.min(Math.max(rate, compressed), most));
}

/** What the format chunk of a WAV says; undefined where there is none. http://soundfile.sapp.org/doc/WaveFormat */
function bytesPerSecond(head: Buffer): number | undefined {
  if (head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8, 12) !== 'WAVE') return undefined;
  for (let at = 12; at + 20 <= head.length;) {
    if (head.toString('latin1', at, at + 4) === 'fmt ') return head.readUInt32LE(at + 16);
    const size = head.readUInt32LE(at + 4);
    at += 8 + size + (size % 2);
  }
  return undefined;
}
