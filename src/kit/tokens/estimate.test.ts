import { expect, test } from 'vitest';
import { estimatedTokensOf, TokenEstimate } from './estimate.ts';
import { openTokens } from './index.ts';

const numbers = Array.from({ length: 500 }, (_, at) => (at * 7919) % 100_003);
const bytes = Buffer.from(numbers.map((number) => number % 251));

const texts: Readonly<Record<string, string>> = {
  prose: 'When a client leaves, its upstream request ends at once. The usage row has what the provider had counted so far, and an estimate of the rest.',
  code: 'export function sum(values: readonly number[]): number {\n  let total = 0;\n  for (const value of values) total += value;\n  return total;\n}\n',
  'numbers in a row': Array.from({ length: 300 }, (_, at) => at + 1).join(' '),
  'digits without end': numbers.join(''),
  'JSON of numbers': JSON.stringify(numbers.map((number) => ({ id: number, share: number / 1000, isOpen: number % 2 === 0 }))),
  'letters in a row': Array.from({ length: 300 }, (_, at) => String.fromCharCode(97 + (at % 26))).join(' '),
  base64: bytes.toString('base64'),
  hexadecimal: bytes.toString('hex'),
  punctuation: '!@#$%^&*()_+-=[]{}|;:,.<>/?~'.repeat(10),
  capitals: 'THE SERVER RETURNS AN ERROR IF THE REQUEST IS TOO LARGE. ',
  emoji: '😀😃😄🤣🙂🚀🌍🔥💡🦄🧠🫠',
  'emoji of several': '👍🏽 ❤️ 🇩🇪 👨‍👩‍👧 ',
  Chinese: '人工智能是计算机科学的一个分支，它企图了解智能的实质，并生产出一种新的能以人类智能相似的方式做出反应的智能机器。',
  Japanese: '吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。コンピューターとインターネットの利用。',
  Korean: '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.',
  Russian: 'Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.',
  Greek: 'Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.',
  Arabic: 'يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً.',
  Hindi: 'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।',
  Thai: 'มนุษย์ทั้งปวงเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ',
  Amharic: 'የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።',
  German: 'Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt.',
  Finnish: 'Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu järki ja omatunto.',
  Indonesian: 'Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka dikaruniai akal dan hati nurani.',
  Swahili: 'Watu wote wamezaliwa huru, hadhi na haki zao ni sawa. Wote wamejaliwa akili na dhamiri, hivyo yapasa watendeane kindugu.',
  Xhosa: 'Bonke abantu bazalwa bekhululekile belingana ngesidima nangokweemfanelo. Bonke abantu banesiphiwo sesazela nesizathu.',
  Hungarian: 'Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel bírván.',
  Latin: 'Omnes homines dignitate et iure liberi et pares nascuntur, rationis et conscientiae participes sunt.',
  Polish: 'Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw.',
  Vietnamese: 'Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.',
  mathematics: '∀x∈ℝ: ∑ᵢ₌₁ⁿ xᵢ² ≥ 0 ⇒ √(a²+b²) ≤ |a|+|b|. ',
};

test.each(Object.entries(texts))('the estimate of %s is close to the count, and not far below it', async (_, text) => {
  const count = (await openTokens()).count(text.repeat(3));
  const estimate = estimatedTokensOf([text.repeat(3)]);
  expect(estimate).toBeGreaterThan(0.7 * count);
  expect(estimate).toBeLessThan(1.6 * count);
});

test.each(Object.entries(texts))('%s has the same estimate in pieces', (_, text) => {
  for (const size of [1, 3, 50]) {
    const pieces = new TokenEstimate();
    for (let at = 0; at < text.length; at += size) pieces.add(text.slice(at, at + size));
    expect(pieces.tokens).toBe(estimatedTokensOf([text]));
  }
});

test('each of some texts has a token, unless it is empty', () => {
  expect(estimatedTokensOf([])).toBe(0);
  expect(estimatedTokensOf([''])).toBe(0);
  for (const text of ['x', ' ', '\n', '.', '7', 'é', 'я', '中', '\u200d', '\ud83d']) expect(estimatedTokensOf([text, '', text])).toBeGreaterThanOrEqual(2);
});

test('what is beyond the texts that are read counts as what is before it', () => {
  const some = ' 7'.repeat(1_048_576);
  const of = (times: number) => estimatedTokensOf(Array.from({ length: times }, () => some));
  expect(of(5) / of(1)).toBeCloseTo(5, 1);
  expect(estimatedTokensOf([some.repeat(5)]) / of(1)).toBeCloseTo(5, 1);
});
