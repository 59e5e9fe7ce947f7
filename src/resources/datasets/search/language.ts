import type { detectAll } from 'tinyld';

/** Characters of a sample: tinyld takes 15 ms for 512 at worst. */
const sample = 512;
const samples = 3;

/** tinyld is asked for these only: the more there are, the more often a short text is taken for one that nobody here writes. */
const known = 'ar bg ca cs da de el en es eu fa fi fr ga he hi hu hy id it ja ko lt ne nl no pl pt ro ru sr sv ta th tr uk vi yi zh'.split(' ');

/** Words that English has and other languages hardly. */
const english = new Set('the of and what how which does with from has have been that this there when where why who should would their they'.split(' '));
const leastEnglish = 0.08;
/** From here on tinyld is believed, whatever the text looks like. */
const sure = 0.5;
const mostlyOther = 0.3;

// 0.6 MB: loaded with the first text
const detector = async (): Promise<typeof detectAll> => (await import('tinyld')).detectAll;

/**
 * The language of a text by three samples of it, as ISO 639-1; `und` where it cannot be told.
 * @param pause called between two steps: each takes 15 ms at most
 */
export async function languageOf(text: string, pause: () => Promise<void> | undefined): Promise<string> {
  const votes = new Map<string, number>();
  for (let index = 0; index < samples; index++) {
    const at = Math.floor(((text.length - sample) * index) / (samples - 1));
    const piece = text.slice(Math.max(0, at), Math.max(0, at) + sample);
    const language = await languageOfSample(piece);
    votes.set(language, (votes.get(language) ?? 0) + 1);
    if (text.length <= sample) break;
    await pause();
  }
  const [best = 'und'] = [...votes].toSorted(([a, one], [b, other]) => other - one || Number(a === 'und') - Number(b === 'und')).map(([language]) => language);
  return best;
}

async function languageOfSample(text: string): Promise<string> {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  if (letters === 0) return 'und';
  const script = scriptOf(text, letters);
  if (script) return script;
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  const isEnglish = words.filter((word) => english.has(word)).length >= leastEnglish * words.length && words.some((word) => english.has(word));
  const detect = await detector();
  // tinyld takes the bars of a table for the full stops of Hindi
  const [best] = detect(text.replaceAll('|', ' '), { only: known });
  if (isEnglish && !(best && best.accuracy >= sure && isForeign(text))) return 'en';
  if (best && best.accuracy >= sure) return best.lang;
  // a few words without accents are English rather than whatever comes first
  if (!isForeign(text)) return 'en';
  return letters > 20 && best ? best.lang : 'und';
}

const isForeign = (text: string) => /[^\p{ASCII}\p{P}\p{S}\s]/u.test(text);

/** The language of a script that has one. */
function scriptOf(text: string, letters: number): string | undefined {
  const share = (pattern: RegExp) => (text.match(pattern)?.length ?? 0) / letters;
  if (share(/[\p{Script=Hiragana}\p{Script=Katakana}]/gu) > 0.05) return 'ja';
  if (share(/\p{Script=Han}/gu) > mostlyOther) return 'zh';
  if (share(/\p{Script=Thai}/gu) > mostlyOther) return 'th';
  if (share(/\p{Script=Hangul}/gu) > mostlyOther) return 'ko';
  return undefined;
}
