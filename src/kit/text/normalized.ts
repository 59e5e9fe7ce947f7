/**
 * A text in a normal form of Unicode. Of more than 30 marks in a row the rest is left out, since putting them in order takes quadratic time.
 * https://unicode.org/reports/tr15/#Stream_Safe_Text_Format
 */
export const normalized = (text: string, form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): string => text.replaceAll(tooManyMarks, '$1').normalize(form);

const tooManyMarks = /(\p{M}{30})\p{M}+/gu;
