/** What a provider's 404 says is missing: the model, something else that the request names, or the address itself. */
export type Missing = 'model' | 'missing' | 'address';

/**
 * Reads the sentence of a 404. Only one that names the model as what is missing counts against the model: a request may name a file, a response or a cached content
 * that is not there, and may put a model's name into its id. So the sentence has to begin with the model; the name is that of the one that was asked.
 *
 * @param model its upstream name; absent where that is not known
 */
export function missingIn(message: string, model: string | undefined): Missing {
  const name = modelMissingIn(message);
  if (name !== undefined) return isAnother(name, model) ? 'missing' : 'model';
  if (/\b(?:url|route|endpoint)\b/i.test(message.slice(0, longest))) return 'address';
  return things.test(message.slice(0, longest)) ? 'missing' : 'address';
}

/** Does a refusal say that another model is missing than the one that was asked? A tool may name one of its own. */
export function namesAnother(message: string, model: string | undefined): boolean {
  const name = modelMissingIn(message);
  return name !== undefined && isAnother(name, model);
}

/** Characters of a sentence that are read. */
const longest = 500;

/** What may stand before the name: `The requested model x`, `No endpoints found for x`, `Unknown model: x`. */
const before = new Set(
  'a an the this no not such requested specified publisher unknown invalid unsupported model models deployment endpoints engine name named id with for found does exist is could cannot unable to find access'.split(
    ' ',
  ),
);
const kinds = new Set(['model', 'models', 'deployment', 'endpoints']);
const negations = new Set(['no', 'not', 'unknown', 'invalid', 'unsupported', 'cannot', 'unable']);

/** What may follow the name, where what stands before does not say it. */
const gone =
  /^(?:(?:is|was|does|could|has|been|you|we|do|currently) ){0,4}(?:not (?:be )?(?:found|exist|available|accessible|valid|a valid|recogni[sz]ed|known|supported|deployed|loaded|enabled|have)|no longer|unavailable|unknown|invalid|deprecated|retired|decommissioned|removed|shut down|missing)/i;

/** What a request may name besides its model. */
const things =
  /\b(?:files?|response|container|cached?|cachedcontents?|content|item|conversation|tools?|vector store|image|video|audio|document|assistant|thread|batch|prompt|skill|mcp server)\b/i;

/** @returns the name of the model, where the sentence is about that and nothing else */
function modelMissingIn(message: string): string | undefined {
  const words = message.slice(0, longest).match(/[^\s"'`´’“”,;()[\]]+/g) ?? [];
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

/** Providers say a name with or without the path before it. */
function isAnother(said: string, asked = said): boolean {
  const [a, b] = [said.toLowerCase(), asked.toLowerCase()];
  return a !== b && !a.endsWith(`/${b}`) && !b.endsWith(`/${a}`);
}
