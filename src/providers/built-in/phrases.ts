/** The built-in model's own phrases, each in several wordings: the first is used unless a seed or a further candidate selects another. */
export const phrases = {
  hello: [
    'Hello! I am Dragoman’s built-in model. I work without any provider or key: I repeat what you ask me to, find answers in what you gave me, call tools and fill JSON schemas.',
    'Hi there! This is Dragoman’s built-in model. No key needed: ask me to repeat something, to find something in your text, to call a tool or to fill a JSON schema.',
    'Welcome! Dragoman’s built-in model speaking. I can repeat, look things up in what you tell me, call tools and answer in JSON; for more, set up a provider.',
  ],
  self: [
    'I am Dragoman’s built-in model, a small set of written rules that runs offline. I can repeat your words (“Say exactly: hello”), answer from this conversation and from passages you give me, call tools, fill JSON schemas and name the type and size of images. For real answers set up a provider, for example with OPENAI_API_KEY, and ask for one of its models by name.',
    'Dragoman’s built-in model: no network, no key, only rules. Try “Repeat: hello”, tell me something and ask about it, hand me passages, tools or a JSON schema. To talk to a real model set up a provider, for example with OPENAI_API_KEY, and name one of its models.',
    'This is Dragoman’s built-in model. It follows about ten rules: it repeats, quotes from what it was given, calls tools and makes JSON. For a real model set up a provider, for example with OPENAI_API_KEY, and name one of its models.',
  ],
  cannot: [
    'I am Dragoman’s built-in model and cannot answer that: I only repeat, quote from what I was given, call tools and make JSON. For a real model set up a provider, for example with OPENAI_API_KEY, and name one of its models.',
    'That is beyond Dragoman’s built-in model: nothing I was given speaks of it. Set up a provider, for example with OPENAI_API_KEY, and name one of its models to ask a real one.',
    'As Dragoman’s built-in model I cannot know that; I can only quote what stands in our conversation. With a provider, for example through OPENAI_API_KEY, a real model answers that you ask for by name.',
  ],
  noPassage: [
    'The passages I was given say nothing about that, and as Dragoman’s built-in model I know nothing else.',
    'I found nothing about that in the passages; Dragoman’s built-in model has no other knowledge.',
    'None of the passages answers that. I am Dragoman’s built-in model and have only them.',
  ],
  noted: ['Noted. Ask me about it and I will find it again.', 'I will keep that in mind for this conversation.', 'Good to know; you can ask me for it later.'],
  thanks: ['You are welcome.', 'With pleasure.', 'Any time.'],
  told: ['You told me: ', 'In your own words: ', 'You said: '],
  given: ['From what I was given: ', 'It says here: ', 'The text has it: '],
  earlier: ['Earlier in our conversation: ', 'As was said before: ', 'It was said already: '],
  silence: ['The tool answered nothing.', 'There was no answer from the tool.', 'The tool came back empty.'],
  failed: ['The tool failed: ', 'The tool reports an error: ', 'That did not work, says the tool: '],
} as const satisfies Record<string, readonly string[]>;

export function phrase(of: keyof typeof phrases, variant: number): string {
  const wordings = phrases[of];
  return wordings[variant % wordings.length]!;
}

/** Whether a text is one of the model's own phrases, which are no source for answers. */
export const isOwn = (text: string): boolean => text.includes('built-in model') || text.includes('OPENAI_API_KEY');
