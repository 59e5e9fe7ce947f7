/** A text as databases keep it: without U+0000 and halves of characters, each of which becomes U+FFFD. As long as before, in UTF-16 units. */
export const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd');
