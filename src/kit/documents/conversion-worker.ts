/*
 * Converts one document and ends: it comes on the input, behind a line with `ConversionAsked` as JSON; what is made of it goes to the output as frames. Libraries
 * print here and there: nothing of that reaches the output.
 */
import { writeSync } from 'node:fs';
import { convert, type ConversionAsked } from './convert.ts';
import { frame, framesOf, type Refused } from './frames.ts';
import { ConversionRefused } from './refusal.ts';

const { stdout, stdin } = process;
const write = stdout.write.bind(stdout);
stdout.write = () => true;
for (const name of ['log', 'info', 'warn', 'error', 'debug'] as const) console[name] = () => {};

const say = (content: Buffer) => new Promise<void>((resolve) => write(content, () => resolve()));

async function asked(): Promise<{ readonly wanted: ConversionAsked; readonly bytes: Uint8Array }> {
  const pieces: Buffer[] = [];
  for await (const piece of stdin as AsyncIterable<Buffer>) pieces.push(piece);
  const whole = Buffer.concat(pieces);
  const end = whole.indexOf('\n');
  return { wanted: JSON.parse(whole.toString('utf8', 0, end)) as ConversionAsked, bytes: whole.subarray(end + 1) };
}

function refusalOf(error: unknown): Refused {
  if (error instanceof ConversionRefused) return { reason: error.reason, message: error.message };
  if (error instanceof RangeError) return { reason: 'too-much', message: 'The file cannot be read: it is nested too deeply.' };
  return { message: error instanceof Error ? String(error.stack).slice(0, 2000) : String(error) };
}

process.on('uncaughtException', (error) => {
  writeSync(1, frame('r', Buffer.from(JSON.stringify(refusalOf(error)))));
  process.exit(1);
});

const { wanted, bytes } = await asked();
try {
  for (const one of framesOf(await convert(bytes, wanted, () => void say(frame('o'))))) await say(one);
} catch (error) {
  await say(frame('r', Buffer.from(JSON.stringify(refusalOf(error)))));
}
process.exit(0);
