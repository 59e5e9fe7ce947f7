/** Bytes a second of sound that is compressed as speech is, 64 kbit/s, and the most that sound has which is not compressed. */
const compressed = 8000;
const most = 1_536_000;

/** About how many seconds a file of sound lasts: by its head where it is a WAV, else by its size. */
export async function audioSeconds(file: Blob): Promise<number> {
  const head = Buffer.from(await file.slice(0, 44).arrayBuffer());
  const isWav = head.length === 44 && head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 16) === 'WAVEfmt ';
  const rate = isWav ? Math.min(Math.max(head.readUInt32LE(28), compressed), most) : compressed;
  return file.size / rate;
}
