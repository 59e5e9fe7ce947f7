/** What a provider's 404 reports as missing: the model, something else that the request names, or the endpoint itself. */
export type Missing = 'model' | 'missing' | 'address';

/**
 * Classifies the message of a 404. Only a message that begins with the model, under the requested name or without a name, counts against the model: a request
 * may name a file, a response or a cached content that does not exist, and its id may contain a model's name.
 * @param model upstream name of the requested model; absent where that is not known
 */
export function missingIn(message: string, model: string | undefined): Missing {
  if (isNameless(message)) return 'model';
  const name = modelMissingIn(message);
  if (name !== undefined) return isAnother(name, model) ? 'missing' : 'model';
  if (/\b(?:url|route|endpoint)\b/i.test(message.slice(0, scannedCharacters))) return 'address';
  return things.test(message.slice(0, scannedCharacters)) ? 'missing' : 'address';
}

/** Does the message report a missing model that is not the requested one? A tool may name a model of its own. */
export function namesAnother(message: string, model: string | undefined): boolean {
  const name = modelMissingIn(message);
  return name !== undefined && isAnother(name, model);
}

/** Characters of a message that are scanned. */
const scannedCharacters = 500;

/** Words that may precede the name: `The requested model x`, `No endpoints found for x`, `Unknown model: x`. */
const before = new Set(
  'a an the this no not such requested specified publisher unknown invalid unsupported model models deployment endpoints engine name named id with for found does exist is could cannot unable to find access'.split(
    ' ',
  ),
);
const kinds = new Set(['model', 'models', 'deployment', 'endpoints']);
const negations = new Set(['no', 'not', 'unknown', 'invalid', 'unsupported', 'cannot', 'unable']);

/** Phrases that follow the name, where no word before it is a negation. */
const gone =
  /^(?:(?:is|was|does|could|has|been|you|we|do|currently) ){0,4}(?:not (?:be )?(?:found|exist|available|accessible|valid|a valid|recogni[sz]ed|known|supported|deployed|loaded|enabled|have)|no longer|unavailable|unknown|invalid|deprecated|retired|decommissioned|removed|shut down|missing)/i;

/**
 * Whether the message begins with a model that has no name, which is the requested one: `Model not found`, `The model is not available in this region`. Google
 * calls it an entity where it says no more: `Requested entity was not found.`, jenslys/opencode-gemini-auth#65
 */
function isNameless(message: string): boolean {
  const [, rest] = /^(?:(?:the|this|requested|specified|publisher) ){0,3}(?:model|entity) (.*)/is.exec(message.slice(0, scannedCharacters)) ?? [];
  const [phrase] = gone.exec(rest ?? '') ?? [];
  return phrase !== undefined && noName.test(rest!.slice(phrase.length));
}

/** What follows a phrase that is about the model before it. */
const noName = /^(?:[.,!]|$| (?:in|here|at|to|or) )/i;

/** Things that a request may name besides its model. */
const things =
  /\b(?:files?|response|container|cached?|cachedcontents?|content|item|conversation|tools?|vector store|image|video|audio|document|assistant|thread|batch|prompt|skill|mcp server)\b/i;

/** @returns the model's name, where the message reports a missing model and nothing else */
function modelMissingIn(message: string): string | undefined {
  const words = message.slice(0, scannedCharacters).match(/[^\s"'`´’“”,;()[\]]+/g) ?? [];
  let isModel = false;
  let isNegated = false;
  for (const [at, word] of words.entries()) {
    const bare = word.replace(/[:.!]{1,3}$/, '');
    const lower = bare.toLowerCase();
    isModel ||= kinds.has(lower);
    isNegated ||= negations.has(lower);
    if (before.has(lower)) continue;
    if (!isModel && !/(?:^|\/)models\//.test(bare)) return undefined;
    const rest = words.slice(at + 1).join(' ');
    return isNegated || rest === '' || gone.test(rest) ? bare : undefined;
  }
  return undefined;
}

/** Providers report a name with or without its path prefix. */
function isAnother(reported: string, requested = reported): boolean {
  const [a, b] = [reported.toLowerCase(), requested.toLowerCase()];
  return a !== b && !a.endsWith(`/${b}`) && !b.endsWith(`/${a}`);
}
