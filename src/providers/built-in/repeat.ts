/**
 * The words that a message asks to have repeated, if any.
 *
 * `Say exactly: X`, `Repeat: X`, `Repeat after me: X`, `Reply with the following text: X`, `Say "X"`, `Say X`, `Respond with exactly X`.
 * The instruction starts a sentence; the text after its colon is taken up to the last character, without enclosing quotation marks.
 */
export function toRepeat(message: string): string | undefined {
  starts.lastIndex = 0;
  for (let start = /^\s*/.exec(message)![0].length, tries = 0; tries < 200; tries++) {
    const words = orderAt(message, start);
    if (words !== undefined) return words;
    starts.lastIndex = start;
    if (!starts.exec(message)) return undefined;
    start = starts.lastIndex;
  }
  return undefined;
}

/** The separator of two sentences. Every quantifier here is bounded, so that no text makes it slow. */
const starts = /(?:[.!?;][ \t]{1,4}|\n[ \t]{0,8})(?=[\p{L}])/gu;

const order =
  /(?:(?:hi|hello|hey)[,!.]? )?(?:please,? |now,? |then,? |and )?(?:you (?:must|should|have to) (?:always )?|i(?: want|'d like|’d like| would like) you to )?(?:(?:can|could|would|will) you )?(?:please )?(?:just |simply |only )?(say|repeat|echo|reply|respond|answer|write|print|output|type|return)(?![\p{L}\p{N}_])/iuy;
const modifiers =
  /(?: (?:back|after|me|us|with|only|just|exactly|precisely|verbatim|literally|the|this|these|those|following|exact|same|single|one|word[- ]for[- ]word|word|words|text|sentence|phrase|string|message|line|to|again|out loud|aloud)(?![\p{L}\p{N}_])){0,8}/iuy;
const colon = /[ \t]{0,4}[:：]/y;
const exact = /exactly|precisely|verbatim|literally|only|just|exact|following|this|these|same|word|text|sentence|phrase|string|message|after me|with/i;
const plain =
  /(?: (?:exactly|precisely|verbatim|literally|only|just|back to me|back|after me|to me|(?:with )?the (?:exact |single )?(?:words?|phrase|text|sentence|number|letter)|with(?: exactly| only| just)?)){0,3}(?![\p{L}\p{N}_])/iuy;
/** `Say something nice` is not a request to repeat. */
const vague =
  /^(?:something|anything|nothing|more|what|whatever|how|why|who|where|when|whether|which|if|it(?!['’])|that|so|yes or no|a few|some|in|about|whatever|your|my name|no more)(?![\p{L}\p{N}_])/iu;
/** `Say hi in three words`: only `hi` is repeated. */
const howLong = / in (?:exactly |just |only )?(?:\w{1,9}|\d{1,4}) (?:words?|sentences?|lines?)[.!]?$/i;
const formats = /^(?:json|yaml|xml|html|csv|markdown|code|text|details|examples|numbers?|bullet.*)[.!]?$/i;

function orderAt(message: string, start: number): string | undefined {
  order.lastIndex = start;
  const found = order.exec(message);
  if (!found) return undefined;
  const verb = found[1]!.toLowerCase();
  const after = order.lastIndex;
  const speaks = verb === 'say' || verb === 'repeat' || verb === 'echo';

  const modifier = take(modifiers, message, after);
  const meant = speaks || verb === 'reply' || verb === 'respond' ? true : exact.test(modifier);
  const mark = take(colon, message, after + modifier.length);
  if (mark && meant) return unquoted(message.slice(after + modifier.length + mark.length).trim());
  const quoted = message.slice(after + modifier.length).trimStart();
  if (meant || modifier === '') {
    const words = quotation(quoted);
    if (words !== undefined) return words;
  }

  const adverb = take(plain, message, after);
  const line = message.slice(after + adverb.length).split('\n', 1)[0]!;
  const isQuestion = /(?:can|could|would|will) you /i.test(found[0]);
  const rest = (isQuestion ? line.replace(/[?？]\s{0,4}$/, '') : line).replace(howLong, '').trim();
  if (rest === '' || vague.test(rest)) return undefined;
  if (speaks && !/^[:,.!?)]/.test(rest)) return rest;
  if (!/^ with/i.test(adverb) && !/exactly|verbatim|only|just/i.test(adverb)) return undefined;
  const strict = /exactly|verbatim|only|just|the .{0,20}(?:word|phrase|text|sentence)/i.test(adverb);
  return strict || (!/\s/.test(rest) && !formats.test(rest)) ? rest : undefined;
}

function take(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

const pairs: Readonly<Record<string, string>> = { '"': '"', "'": "'", '“': '”', '„': '“', '‘': '’', '«': '»', '「': '」', '`': '`' };

/** The quoted text at the start. */
function quotation(text: string): string | undefined {
  if (text.startsWith('```'))
    return /^```[a-z]{0,20}\n/i.test(text) && text.indexOf('\n```', 3) > 0 ? text.slice(text.indexOf('\n') + 1, text.indexOf('\n```', 3)) : undefined;
  const close = pairs[text[0] ?? ''];
  const end = close === undefined ? -1 : text.indexOf(close, 1);
  return end > 1 ? text.slice(1, end) : undefined;
}

/** Removes quotation marks that enclose the whole text. */
function unquoted(text: string): string | undefined {
  const words = quotation(text);
  if (words === undefined) return text || undefined;
  const fence = text.startsWith('```');
  const behind = text.slice(fence ? text.indexOf('\n```', 3) + 4 : words.length + 2);
  return /^[\s.!?]{0,8}$/.test(behind) ? words : text;
}
